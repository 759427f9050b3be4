import { elementsOf, membersOf, oneLine } from '../../../../protocol/json.ts'
import type { Parameter, Serialization } from '../plan.ts'

// Arguments are read from their JSON text, so that a number keeps every digit on its way into a URL or form.

type Value = { kind: 'one', one: string } | { kind: 'list', list: string[] } | { kind: 'map', entries: Array<[string, string]> }

/** One JSON value as it stands in a URL or form: a string without its quotes, anything else as it is written. */
export const scalarOf = (text: string): string => text.startsWith('"') ? JSON.parse(text) as string : oneLine(text)

/** The members of an object's text as texts, the last one where a key stands twice. */
export const entriesOf = (text: string): Map<string, string> =>
  new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))

const isNull = (text: string): boolean => text === 'null'

function valueOf (text: string): Value {
  if (text.startsWith('[')) return { kind: 'list', list: elementsOf(text).filter((element) => !isNull(element)).map(scalarOf) }
  if (text.startsWith('{')) {
    return { kind: 'map', entries: [...entriesOf(text)].filter(([, each]) => !isNull(each)).map(([key, each]) => [key, scalarOf(each)]) }
  }
  return { kind: 'one', one: scalarOf(text) }
}

const percent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Percent-encodes all but the unreserved characters of RFC 3986. */
export const percentEncode = (value: string): string => encodeURIComponent(Buffer.from(value).toString()).replace(/[!'()*]/g, percent)

/** The same, but reserved characters and what is encoded already stay, save those that end a query's value. */
const escapeReserved = (value: string): string =>
  encodeURI(Buffer.from(value).toString())
    .replace(/%25([0-9a-f]{2})/gi, '%$1')
    .replace(/%5B/g, '[')
    .replace(/%5D/g, ']')
    .replace(/[#&+]/g, percent)

const asIs = (value: string): string => value
const delimiters = { spaceDelimited: ' ', pipeDelimited: '|', tabDelimited: '\t' } as const
const delimiterOf = (style: Serialization['style']): string => style in delimiters ? delimiters[style as keyof typeof delimiters] : ','

/** A value in a path or header (OpenAPI, "Style Examples"; RFC 6570). A path's is percent-encoded, a header's is not. */
export function expand ({ in: place, name, style, explode, json }: Parameter, text: string): string {
  const encode = place === 'path' ? percentEncode : asIs
  const value: Value = json ? { kind: 'one', one: oneLine(text) } : valueOf(text)
  const lead = style === 'label' ? '.' : style === 'matrix' ? ';' : ''
  const between = lead === '' ? encode(delimiterOf(style)).replace('%2C', ',') : explode ? lead : ','
  const named = (written: string): string =>
    style !== 'matrix' ? `${lead}${written}` : `;${percentEncode(name)}${written === '' ? '' : `=${written}`}`
  if (value.kind === 'one') return named(encode(value.one))
  if (value.kind === 'list') {
    if (value.list.length === 0) return ''
    return explode && style === 'matrix'
      ? value.list.map((each) => named(encode(each))).join('')
      : named(value.list.map(encode).join(between))
  }
  if (value.entries.length === 0) return ''
  if (explode) return `${lead}${value.entries.map(([key, each]) => `${encode(key)}=${encode(each)}`).join(between)}`
  return named(value.entries.flat().map(encode).join(between))
}

/** A value in a query, a cookie or a form: the pairs `name=value` that it makes, percent-encoded. Null and empty lists make none. */
export function pairsOf (name: string, { style, explode, allowReserved: reserved }: Serialization, text: string): string[] {
  if (isNull(text)) return []
  const encode = reserved ? escapeReserved : percentEncode
  if (style === 'deepObject') return deep(percentEncode(name), text, encode)
  const value = valueOf(text)
  const key = percentEncode(name)
  const between = percentEncode(delimiterOf(style)).replace('%2C', ',')
  if (value.kind === 'one') return [`${key}=${encode(value.one)}`]
  if (value.kind === 'list') {
    if (value.list.length === 0) return []
    return explode ? value.list.map((each) => `${key}=${encode(each)}`) : [`${key}=${value.list.map(encode).join(between)}`]
  }
  if (value.entries.length === 0) return []
  return explode
    ? value.entries.map(([member, each]) => `${percentEncode(member)}=${encode(each)}`)
    : [`${key}=${value.entries.flat().map(encode).join(between)}`]
}

/** `name[member]=value`, however deep; a list's elements are named by their number. */
function deep (name: string, text: string, encode: (value: string) => string): string[] {
  if (isNull(text)) return []
  const within = (member: string): string => `${name}%5B${percentEncode(member)}%5D`
  if (text.startsWith('[')) return elementsOf(text).flatMap((each, at) => deep(within(String(at)), each, encode))
  if (text.startsWith('{')) return [...entriesOf(text)].flatMap(([member, each]) => deep(within(member), each, encode))
  return [`${name}=${encode(scalarOf(text))}`]
}

// Serializes arguments into URLs, headers and forms. Arguments are taken from their JSON text, so that numbers keep all
// digits.
import { elementsOf, membersOf, toOneLine } from '../../../../protocol/json.ts'
import type { Parameter, Serialization } from '../plan.ts'

type Value =
  | { kind: 'scalar', text: string }
  | { kind: 'array', elements: string[] }
  | { kind: 'object', entries: Array<[string, string]> }

/** Converts a JSON text to plain text: a JSON string to its content; other values stay JSON, on one line. */
export const toPlainText = (text: string): string => text.startsWith('"') ? JSON.parse(text) as string : toOneLine(text)

/** Returns the members of an object's JSON text, as JSON texts by name. Of duplicate names, the last one is used. */
export const memberJsonTexts = (text: string): Map<string, string> =>
  new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))

const isNull = (text: string): boolean => text === 'null'

/**
 * Parses a JSON text for serialization. Elements and members that are null are omitted.
 * @param innerDelimiters see `Serialization`
 */
function valueOf (text: string, innerDelimiters: readonly string[] = []): Value {
  if (text.startsWith('[')) return { kind: 'array', elements: elementTexts(text, innerDelimiters) }
  if (text.startsWith('{')) {
    const members = [...memberJsonTexts(text)].filter(([, member]) => !isNull(member))
    return { kind: 'object', entries: members.map(([name, member]) => [name, toPlainText(member)]) }
  }
  return { kind: 'scalar', text: toPlainText(text) }
}

const elementTexts = (text: string, [delimiter, ...inner]: readonly string[]): string[] =>
  elementsOf(text).filter((element) => !isNull(element)).map((element) =>
    delimiter !== undefined && element.startsWith('[')
      ? elementTexts(element, inner).join(delimiter)
      : toPlainText(element))

const encodeCharacter = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Percent-encodes all characters except the unreserved ones of RFC 3986. */
export const percentEncode = (value: string): string =>
  encodeURIComponent(Buffer.from(value).toString()).replace(/[!'()*]/g, encodeCharacter)

/**
 * Percent-encodes a value with `allowReserved`: reserved characters and existing percent-encodings are kept, except
 * `#`, `&` and `+`, which would not arrive as part of the value.
 */
const percentEncodeReserved = (value: string): string =>
  encodeURI(Buffer.from(value).toString())
    .replace(/%25([0-9a-f]{2})/gi, '%$1')
    .replace(/%5B/g, '[')
    .replace(/%5D/g, ']')
    .replace(/[#&+]/g, encodeCharacter)

const encodeSegments = (value: string): string => value.split('/').map(percentEncode).join('/')

const delimiters = { spaceDelimited: ' ', pipeDelimited: '|', tabDelimited: '\t' } as const
const delimiterOf = (style: Serialization['style']): string =>
  style in delimiters ? delimiters[style as keyof typeof delimiters] : ','

const prefixes = { label: '.', matrix: ';' } as const
const prefixOf = (style: Serialization['style']): string =>
  style in prefixes ? prefixes[style as keyof typeof prefixes] : ''

/**
 * Serializes the value of a path or header parameter (OpenAPI, "Style Examples"; RFC 6570). In a path, the value is
 * percent-encoded; in a header, it is literal.
 * @param text the argument as JSON text
 */
export function expandParameter (
  { in: location, name, style, explode, json, withSlashes, innerDelimiters }: Parameter, text: string
): string {
  const encode = location !== 'path' ? (value: string): string => value : withSlashes ? encodeSegments : percentEncode
  const value: Value = json ? { kind: 'scalar', text: toOneLine(text) } : valueOf(text, innerDelimiters)
  const prefix = prefixOf(style)
  const separator = prefix === '' ? encode(delimiterOf(style)).replace('%2C', ',') : explode ? prefix : ','
  const isMatrix = style === 'matrix'
  const withPrefix = (expanded: string): string => {
    if (!isMatrix) return `${prefix}${expanded}`
    return expanded === '' ? `;${percentEncode(name)}` : `;${percentEncode(name)}=${expanded}`
  }
  switch (value.kind) {
    case 'scalar':
      return withPrefix(encode(value.text))
    case 'array':
      if (value.elements.length === 0) return ''
      if (explode && isMatrix) return value.elements.map((element) => withPrefix(encode(element))).join('')
      return withPrefix(value.elements.map(encode).join(separator))
    case 'object':
      if (value.entries.length === 0) return ''
      if (!explode) return withPrefix(value.entries.flat().map(encode).join(separator))
      return `${prefix}${value.entries.map(([member, each]) => `${encode(member)}=${encode(each)}`).join(separator)}`
  }
}

/**
 * Serializes a value into pairs `name=value` for a query, a cookie or a form, percent-encoded. null, and empty arrays
 * and objects, result in no pairs.
 * @param text the argument as JSON text
 */
export function toNameValuePairs (
  name: string, { style, explode, allowReserved, innerDelimiters }: Serialization, text: string
): string[] {
  if (isNull(text)) return []
  const encode = allowReserved ? percentEncodeReserved : percentEncode
  const key = percentEncode(name)
  if (style === 'deepObject') return deepPairs(key, text, encode)
  const value = valueOf(text, innerDelimiters)
  const separator = percentEncode(delimiterOf(style)).replace('%2C', ',')
  switch (value.kind) {
    case 'scalar':
      return [`${key}=${encode(value.text)}`]
    case 'array':
      if (value.elements.length === 0) return []
      if (explode) return value.elements.map((element) => `${key}=${encode(element)}`)
      return [`${key}=${value.elements.map(encode).join(separator)}`]
    case 'object':
      if (value.entries.length === 0) return []
      if (explode) return value.entries.map(([member, each]) => `${percentEncode(member)}=${encode(each)}`)
      return [`${key}=${value.entries.flat().map(encode).join(separator)}`]
  }
}

/**
 * Serializes a value in the style `deepObject`, at any depth, into pairs such as `name[member]=value`. Elements of
 * arrays are named by their index.
 */
function deepPairs (name: string, text: string, encode: (value: string) => string): string[] {
  if (isNull(text)) return []
  const nameOf = (member: string): string => `${name}%5B${percentEncode(member)}%5D`
  if (text.startsWith('[')) {
    return elementsOf(text).flatMap((element, index) => deepPairs(nameOf(String(index)), element, encode))
  }
  if (text.startsWith('{')) {
    return [...memberJsonTexts(text)].flatMap(([member, each]) => deepPairs(nameOf(member), each, encode))
  }
  return [`${name}=${encode(toPlainText(text))}`]
}

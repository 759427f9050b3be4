import type { JsonObject } from './keywords.ts'

/**
 * Writes a document piece by piece: `begin` and `end` enclose the members of a nested object. The outermost members are
 * at depth 0.
 */
export interface Notation {
  /** The text before and after the outermost members. */
  readonly open: string
  readonly close: string
  /** The text between two members. */
  readonly separator: string
  members: (value: JsonObject, depth: number) => string
  begin: (key: string, depth: number) => string
  end: (isEmpty: boolean) => string
}

export type Format = 'json' | 'yaml'

export const notations: Readonly<Record<Format, Notation>> = {
  json: {
    open: '{',
    close: '}',
    separator: ',',
    members: (value) => JSON.stringify(value).slice(1, -1),
    begin: (key) => `${JSON.stringify(key)}:{`,
    end: () => '}'
  },
  yaml: {
    open: '',
    close: '\n',
    separator: '',
    members: yamlMembers,
    begin: (key, depth) => yamlKey(key, lineStart(depth)),
    end: (isEmpty) => isEmpty ? ' {}' : ''
  }
}

// Writes JSON values as YAML in block style, with every string in double quotes, whose escapes JSON and YAML share.

/** Plain words that YAML 1.1 parsers read as booleans or null. */
const reservedWord = /^(?:true|false|null|yes|no|on|off|y|n)$/i
/** Characters that JSON does not escape and YAML reads as line breaks, or forbids; and lone surrogates. */
const escapedCharacter = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/
/** Max length of a key before `:`; a longer one is written as an explicit key (`? key`). */
const maxKeyLength = 1_000

const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

const escapeSpecial = (json: string): string => json.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escape)
const replaceSurrogates = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd')
const quote = (text: string): string =>
  escapedCharacter.test(text) ? escapeSpecial(JSON.stringify(replaceSurrogates(text))) : JSON.stringify(text)

/** The texts of frequent keys. */
const keyTexts = new Map<string, string>()

/** A key as it is written: plain where that is unambiguous, else quoted. */
function keyOf (key: string): string {
  const known = keyTexts.get(key)
  if (known !== undefined) return known
  const isPlain = /^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) && !reservedWord.test(key)
  const text = isPlain ? key : quote(key)
  if (keyTexts.size < 1_000 && key.length < 64) keyTexts.set(key, text)
  return text
}

type Collection = readonly unknown[] | Readonly<Record<string, unknown>>

/** The beginning of a line at a depth: a line break, and two spaces for each level. */
const lineStart = (depth: number): string => `\n${'  '.repeat(depth)}`

/**
 * The members of an object as lines, each with its line break and indent before it. Members that are undefined are left
 * out.
 */
function yamlMembers (value: Readonly<Record<string, unknown>>, depth: number): string {
  const parts: string[] = []
  const indent = lineStart(depth)
  write(value, indent, indent, parts)
  // Joined, since a cached concatenation of many small strings takes much more memory.
  return parts.join('')
}

/**
 * A key with its colon.
 * @param indent the beginning of a line at the key's depth
 * @param before the text before the key, where it is not the indent
 */
function yamlKey (key: string, indent: string, before = indent): string {
  const name = keyOf(key)
  return name.length > maxKeyLength ? `${before}? ${name}${indent}:` : `${before}${name}:`
}

/** Whether a value is written on lines of its own. An empty array or object is not. */
function isCollection (value: unknown): value is Collection {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  for (const key in value) if (Object.hasOwn(value, key)) return true
  return false
}

const scalar = (value: unknown): string => {
  if (typeof value === 'string') return quote(value)
  // YAML 1.1 parsers read a number with an exponent as a string unless it has a dot.
  return typeof value === 'number'
    ? JSON.stringify(value).replace(/^(-?\d+)e/, '$1.0e')
    : JSON.stringify(value) ??
    'null'
}

/** Max indent in characters. A value below it is written on one line as JSON, which is a subset of YAML. */
const maxIndent = 80

const flow = (value: unknown): string =>
  escapeSpecial(
    JSON.stringify(value, (_key, each: unknown) => typeof each === 'string' ? replaceSurrogates(each) : each)
  )

/** @param start the text before the first line: a line break and the indent, or the dash of the enclosing array */
function write (value: Collection, indent: string, start: string, parts: string[]): void {
  const deeper = `${indent}  `
  let before = start
  if (Array.isArray(value)) {
    for (const each of value as unknown[]) {
      if (!isCollection(each)) parts.push(before, '- ', scalar(each))
      else if (indent.length > maxIndent) parts.push(before, '- ', flow(each))
      else write(each, deeper, `${before}- `, parts)
      before = indent
    }
    return
  }
  const members = value as Readonly<Record<string, unknown>>
  for (const key of Object.keys(members)) {
    const each = members[key]
    if (each === undefined) continue
    parts.push(yamlKey(key, indent, before))
    if (!isCollection(each)) parts.push(' ', scalar(each))
    else if (indent.length > maxIndent) parts.push(' ', flow(each))
    else write(each, deeper, deeper, parts)
    before = indent
  }
}

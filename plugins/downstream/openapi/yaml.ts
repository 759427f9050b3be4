/**
 * Writes an object as YAML in block style; deeply nested values are written as JSON. String values are in double
 * quotes, with escapes that JSON and YAML share. Parsers of YAML 1.1 and 1.2 read the same values. Undefined members
 * are omitted.
 */
export function toYaml (value: Readonly<Record<string, unknown>>): string {
  const parts: string[] = []
  write(value, '\n', '', parts)
  return `${parts.join('')}\n`
}

/** Matches words that YAML 1.1 parsers treat as booleans or null unless they are quoted. */
const reservedWord = /^(?:true|false|null|yes|no|on|off|y|n)$/i
/** Matches characters that JSON does not escape but YAML treats as line breaks or forbids, and surrogates. */
const escapedCharacter = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/
/** Max length of a key before `:`; longer keys are written as explicit keys (`? key`). */
const maxKeyLength = 1_000

const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

const escapeSpecial = (json: string): string => json.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escape)
const replaceSurrogates = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd')
const quote = (text: string): string =>
  escapedCharacter.test(text) ? escapeSpecial(JSON.stringify(replaceSurrogates(text))) : JSON.stringify(text)

/** Returns a key as it is written: plain if that is unambiguous, otherwise quoted. */
const keyOf = (key: string): string =>
  /^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) && !reservedWord.test(key) ? key : quote(key)

type Collection = readonly unknown[] | Readonly<Record<string, unknown>>

/**
 * Returns the text of a key and its colon.
 * @param indent a line break, and the indent of the key
 * @param before the text before the key
 */
function keyText (key: string, indent: string, before: string): string {
  const name = keyOf(key)
  return name.length > maxKeyLength ? `${before}? ${name}${indent}:` : `${before}${name}:`
}

/** Whether a value is a non-empty array or object, whose elements or members are written on lines of their own. */
function isCollection (value: unknown): value is Collection {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  for (const key in value) if (Object.hasOwn(value, key)) return true
  return false
}

const scalar = (value: unknown): string => {
  if (typeof value === 'string') return quote(value)
  // YAML 1.1 parsers treat a number with an exponent as a string unless it has a dot.
  if (typeof value === 'number') return JSON.stringify(value).replace(/^(-?\d+)e/, '$1.0e')
  return JSON.stringify(value) ?? 'null'
}

/** Max indent in characters. Deeper values are written on one line as JSON, which is a subset of YAML. */
const maxIndent = 80

const flow = (value: unknown): string =>
  escapeSpecial(
    JSON.stringify(value, (_key, each: unknown) => typeof each === 'string' ? replaceSurrogates(each) : each)
  )

/**
 * Appends the text of a non-empty array or object to `parts`.
 * @param indent a line break, and the indent of the value's lines
 * @param start the text before the first line of the value: `indent`, or, in an array, the indent and the dash
 */
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
    parts.push(keyText(key, indent, before))
    if (!isCollection(each)) parts.push(' ', scalar(each))
    else if (indent.length > maxIndent) parts.push(' ', flow(each))
    else write(each, deeper, deeper, parts)
    before = indent
  }
}

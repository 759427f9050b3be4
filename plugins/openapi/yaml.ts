// YAML for what is JSON already: block style, with every text in double quotes, where JSON and YAML agree. A library does the same
// in many times the CPU, and documents have thousands of tools.

/** Words that YAML 1.1 readers take for something else. */
const reserved = /^(?:true|false|null|yes|no|on|off|y|n)$/i
/** What JSON leaves as it is, and YAML takes for a line break, or does not take at all; and halves of pairs. */
const special = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/
/** A longer key is written in another way. */
const longestKey = 1_000

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

const quoted = (text: string): string => special.test(text)
  ? JSON.stringify(text.replace(/\p{Surrogate}/gu, '\ufffd')).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escaped)
  : JSON.stringify(text)

const names = new Map<string, string>()
/** A key as it is written. The same few come again and again. */
function keyOf (key: string): string {
  let known = names.get(key)
  if (known !== undefined) return known
  known = /^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) && !reserved.test(key) ? key : quoted(key)
  if (names.size < 1_000 && key.length < 64) names.set(key, known)
  return known
}

type Collection = readonly unknown[] | Readonly<Record<string, unknown>>

/** A JSON value as YAML; an object's members begin on lines of their own. Members without a value are left out. */
export const toYaml = (value: unknown): string => isCollection(value) ? `${lines(value, '\n', '\n').slice(1)}\n` : `${scalar(value)}\n`

/** What has lines of its own: an empty list or object is a word like any other. */
function isCollection (value: unknown): value is Collection {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  for (const key in value) if (Object.hasOwn(value, key)) return true
  return false
}

const scalar = (value: unknown): string => typeof value === 'string' ? quoted(value) : JSON.stringify(value) ?? 'null'

/** @param start what stands before the first line: a break and the indent, or the dash of the list that it stands in */
function lines (value: Collection, indent: string, start: string): string {
  const deeper = `${indent}  `
  let out = ''
  let before = start
  if (Array.isArray(value)) {
    for (const each of value as unknown[]) {
      out += isCollection(each) ? lines(each, deeper, `${before}- `) : `${before}- ${scalar(each)}`
      before = indent
    }
    return out
  }
  const members = value as Readonly<Record<string, unknown>>
  for (const key of Object.keys(members)) {
    const each = members[key]
    if (each === undefined) continue
    const name = keyOf(key)
    out += name.length > longestKey ? `${before}? ${name}${indent}:` : `${before}${name}:`
    out += isCollection(each) ? lines(each, deeper, deeper) : ` ${scalar(each)}`
    before = indent
  }
  return out
}

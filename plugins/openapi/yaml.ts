// YAML for what is JSON already: block style, with every text in double quotes, where JSON and YAML agree. A library does the same
// in many times the CPU, and documents have thousands of tools.

/** Words that YAML 1.1 readers take for something else. */
const reserved = /^(?:true|false|null|yes|no|on|off|y|n)$/i
/** What JSON leaves as it is, and YAML takes for a line break, or does not take at all; and halves of pairs. */
const special = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/
/** A longer key is written in another way. */
const longestKey = 1_000

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

const quotedAll = (json: string): string => json.replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escaped)
const quoted = (text: string): string =>
  special.test(text) ? quotedAll(JSON.stringify(text.replace(/\p{Surrogate}/gu, '\ufffd'))) : JSON.stringify(text)

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

/** What begins a line so deep: the break, and two spaces for each level. */
export const lineStart = (depth: number): string => `\n${'  '.repeat(depth)}`

/** The members of an object as lines, each begun with a break and the indent. Members without a value are left out. */
export function yamlMembers (value: Readonly<Record<string, unknown>>, depth: number): string {
  const parts: string[] = []
  const indent = lineStart(depth)
  write(value, indent, indent, parts)
  // In one go: a text of many small ones, which is kept, costs the collector more than the tool that it is of.
  return parts.join('')
}

/** A key with its colon. @param indent what begins a line of its depth @param before what stands there this time */
export function yamlKey (key: string, indent: string, before = indent): string {
  const name = keyOf(key)
  return name.length > longestKey ? `${before}? ${name}${indent}:` : `${before}${name}:`
}

/** What has lines of its own: an empty list or object is a word like any other. */
function isCollection (value: unknown): value is Collection {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  for (const key in value) if (Object.hasOwn(value, key)) return true
  return false
}

const scalar = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value)
  // YAML 1.1 readers know a number with an exponent by its dot.
  return typeof value === 'number' ? JSON.stringify(value).replace(/^(-?\d+)e/, '$1.0e') : JSON.stringify(value) ?? 'null'
}

/** Each level is indented further: so deep, in characters, and no deeper. What is further down stands on one line, as JSON, which is YAML, too. */
const deepest = 80

const flow = (value: unknown): string =>
  quotedAll(JSON.stringify(value, (_key, each: unknown) => (typeof each === 'string' ? each.replace(/\p{Surrogate}/gu, '\ufffd') : each)))

/** @param start what stands before the first line: a break and the indent, or the dash of the list that it stands in */
function write (value: Collection, indent: string, start: string, parts: string[]): void {
  const deeper = `${indent}  `
  let before = start
  if (Array.isArray(value)) {
    for (const each of value as unknown[]) {
      if (!isCollection(each)) parts.push(before, '- ', scalar(each))
      else if (indent.length > deepest) parts.push(before, '- ', flow(each))
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
    else if (indent.length > deepest) parts.push(' ', flow(each))
    else write(each, deeper, deeper, parts)
    before = indent
  }
}

import { elementsOf, isObject, membersOf } from './json.ts'

/** Whether V8 has a bug that makes it read some escaped names as names from earlier texts (nodejs/node#63785). */
const misreadsNames = ((): boolean => {
  JSON.parse('{"x":0,"\\\\":0}')
  return !Object.hasOwn(JSON.parse('{"x":0,"\\u0061":0}') as object, 'a')
})()

/**
 * Parses a JSON text like `JSON.parse`, but with correct member names even if V8 misreads some (`misreadsNames`), since
 * the gateway must check the names that servers will read.
 */
export function parseJsonText (text: string): unknown {
  const value: unknown = JSON.parse(text)
  return misreadsNames && text.includes('\\') && hasBackslashInName(value) ? parseByMembers(text) : value
}

/** Whether any member name in a parsed value contains a backslash. All misread names do. */
function hasBackslashInName (value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasBackslashInName)
  return isObject(value) &&
    Object.entries(value).some(([name, member]) => name.includes('\\') || hasBackslashInName(member))
}

function parseByMembers (text: string): unknown {
  const first = text.trimStart()[0]
  if (first === '[') return elementsOf(text).map(parseByMembers)
  if (first !== '{') return JSON.parse(text) as unknown
  return Object.fromEntries(membersOf(text).map(({ key, start, end }) => [key, parseByMembers(text.slice(start, end))]))
}

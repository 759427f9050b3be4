import { elementsOf, isObject, membersOf } from './json.ts'

/** Whether V8 has the bug that reads some escaped member names as names of earlier texts (nodejs/node#63785). */
const misreadsNames = ((): boolean => {
  JSON.parse('{"x":0,"\\\\":0}')
  return !Object.hasOwn(JSON.parse('{"x":0,"\\u0061":0}') as object, 'a')
})()

/** `JSON.parse`, with correct member names even if V8 has that bug: servers must read the names that were checked. */
export function parseJsonText (text: string): unknown {
  const value: unknown = JSON.parse(text)
  return misreadsNames && text.includes('\\') && hasBackslashInName(value) ? parseByMembers(text) : value
}

/** Whether a member name, as read, has a backslash. All misread names do. */
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

import { elementsOf, memberOf, membersOf, withMembers } from '../json.ts'

// Since 2026-07-28, a tool's schemas may be any of JSON Schema. Clients of earlier revisions take them for objects whose properties are
// objects, and one tool that is otherwise makes them refuse the whole list. Servers of earlier revisions list such tools as well.

/** Schemas that are booleans, as objects that mean the same. */
const asObjects: Readonly<Record<string, string>> = { true: '{}', false: '{"not":{}}' }

/**
 * A tool as clients of revisions up to 2025-11-25 can read it. An `outputSchema` that they cannot is left out, since nothing needs it.
 * @param text of the tool, as JSON
 * @returns the same text, where nothing is to be changed; undefined: they cannot read it
 */
export function readableTool (text: string): string | undefined {
  const input = memberOf(text, 'inputSchema')
  const inputSchema = input === undefined ? undefined : objectSchema(input, true)
  if (inputSchema === undefined) return undefined
  const output = memberOf(text, 'outputSchema')
  const outputSchema = output === undefined || refersElsewhere.test(output) ? undefined : objectSchema(output, false)
  if (inputSchema === input && outputSchema === output) return text
  return withMembers(text, { inputSchema, outputSchema })
}

/** Clients compile this schema when they read the list, and have no others. */
const refersElsewhere = /"\$ref"\s*:\s*"[^#]/

/** A schema of objects, as former revisions write it; undefined for another one. @param isObject what it describes is an object anyway */
function objectSchema (text: string, isObject: boolean): string | undefined {
  const members = new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))
  const { type, required, properties } = Object.fromEntries(members)
  if (!text.startsWith('{') || (type === undefined ? !isObject : JSON.parse(type) !== 'object')) return undefined
  if (required !== undefined && !(required.startsWith('[') && elementsOf(required).every((each) => each.startsWith('"')))) return undefined
  if (properties === undefined) return type === undefined ? withMembers(text, { type: '"object"' }) : text
  const own = objectProperties(properties)
  if (own === undefined) return undefined
  return own === properties && type !== undefined ? text : withMembers(text, { type: '"object"', properties: own })
}

/** The `properties` of a schema with objects in place of booleans; undefined where there is something else. */
function objectProperties (text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  const changes: Array<[string, string]> = []
  for (const { key, start, end } of membersOf(text)) {
    if (text[start] === '{' || text[start] === '[') continue
    const object = asObjects[text.slice(start, end)]
    if (object === undefined) return undefined
    changes.push([key, object])
  }
  return changes.length === 0 ? text : withMembers(text, Object.fromEntries(changes))
}

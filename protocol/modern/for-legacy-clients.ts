// Translates answers of modern servers for clients of earlier revisions.
import { code, type RpcError } from '../errors.ts'
import { elementsOf, isObject, memberOf, smallMemberOf, withMembers, membersOf } from '../json.ts'
import { modernCode } from './envelope.ts'

/**
 * The result of a tool for a client of an earlier revision: structured content that is no object, which such a client
 * refuses with all the rest, is told as text after what the server says, unless that has the same JSON already.
 */
export function withObject (result: string): string {
  if (!result.includes('"structuredContent"')) return result
  const value = memberOf(result, 'structuredContent')
  if (value === undefined || value.startsWith('{')) return result
  const content = elementsOf(memberOf(result, 'content') ?? '[]')
  const told = compact(value)
  const isTold = content.some((block) => {
    const text = smallMemberOf(block, 'type') === 'text' ? memberOf(block, 'text') : undefined
    return text?.startsWith('"') === true && compact(String(JSON.parse(text))) === told
  })
  const all = isTold ? content : [...content, JSON.stringify({ type: 'text', text: value })]
  return withMembers(result, { structuredContent: undefined, content: `[${all.join()}]` })
}

const blank: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r'])

/**
 * A text without the white space between the values of its JSON: so texts are compared, in which numbers have all their
 * digits.
 */
function compact (text: string): string {
  let made = ''
  let from = 0
  let isString = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') isString = !isString
    else if (isString && char === '\\') at++
    else if (!isString && blank.has(char)) {
      made += text.slice(from, at)
      from = at + 1
    }
  }
  return made + text.slice(from)
}

/**
 * Whether -32602 says that there is no such resource, for which clients of earlier revisions know a code of its own:
 * its data is the URI, and nothing else (SEP-2164).
 */
export function namesMissing (method: string, errorText: string): boolean {
  if (method !== 'resources/read') return false
  const data = smallMemberOf(errorText, 'data')
  return isObject(data) && typeof data.uri === 'string' && Object.keys(data).length === 1
}

/** The text of an error for the client in place of one that is about the gateway's own hop. */
export function translated ({ code: number, message }: RpcError, errorText: string): string {
  const data = memberOf(errorText, 'data')
  const text = number === modernCode.missingCapability
    ? `The server needs a capability that was not declared to it: ${message}`
    : `The server refused how Tool-Hub sent the request: ${message}`
  const error = JSON.stringify(
    { code: number === modernCode.missingCapability ? code.invalidRequest : code.internal, message: text }
  )
  return data === undefined ? error : withMembers(error, { data })
}

// Since 2026-07-28, a tool's schemas may be any of JSON Schema. Clients of earlier revisions take them for objects
// whose properties are objects, and one tool that is otherwise makes them refuse the whole list. Servers of earlier
// revisions list such tools as well.

/** Schemas that are booleans, as objects that mean the same. */
const asObjects: Readonly<Record<string, string>> = { true: '{}', false: '{"not":{}}' }

/**
 * A tool as clients of revisions up to 2025-11-25 can read it. An `outputSchema` that they cannot is left out, since
 * nothing needs it.
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

/**
 * A schema of objects, as former revisions write it; undefined for another one.
 * @param isObject what it describes is an object anyway
 */
function objectSchema (text: string, isObject: boolean): string | undefined {
  const members = new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))
  const { type, required, properties } = Object.fromEntries(members)
  if (!text.startsWith('{') || (type === undefined ? !isObject : JSON.parse(type) !== 'object')) return undefined
  if (required !== undefined && !(required.startsWith('[') &&
      elementsOf(required).every((each) => each.startsWith('"')))) return undefined
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

// Converts answers and tools of modern servers for clients of earlier revisions.
import { rpcCode, type RpcError } from '../errors.ts'
import { elementsOf, isObject, memberOf, parseSmallMember, withMembers, membersOf } from '../json.ts'
import { modernErrorCode } from './envelope.ts'

/**
 * Converts a tool result for a client of an earlier revision, which rejects structured content that is not an object.
 * Such content is removed, and appended to `content` as a text block unless a block already has the same JSON.
 */
export function toLegacyToolResult (result: string): string {
  if (!result.includes('"structuredContent"')) return result
  const value = memberOf(result, 'structuredContent')
  if (value === undefined || value.startsWith('{')) return result
  const content = elementsOf(memberOf(result, 'content') ?? '[]')
  const compactValue = compact(value)
  const isInContent = content.some((block) => {
    const text = parseSmallMember(block, 'type') === 'text' ? memberOf(block, 'text') : undefined
    return text?.startsWith('"') === true && compact(String(JSON.parse(text))) === compactValue
  })
  const all = isInContent ? content : [...content, JSON.stringify({ type: 'text', text: value })]
  return withMembers(result, { structuredContent: undefined, content: `[${all.join()}]` })
}

const whitespace: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r'])

/** Removes whitespace between the tokens of a JSON text, to compare texts without losing digits of numbers. */
function compact (text: string): string {
  let made = ''
  let from = 0
  let isString = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') isString = !isString
    else if (isString && char === '\\') at++
    else if (!isString && whitespace.has(char)) {
      made += text.slice(from, at)
      from = at + 1
    }
  }
  return made + text.slice(from)
}

/**
 * Whether an error -32602 means that the resource does not exist: `data` then contains the URI only (SEP-2164).
 * Clients of earlier revisions expect another code for this error.
 */
export function isResourceNotFound (method: string, errorText: string): boolean {
  if (method !== 'resources/read') return false
  const data = parseSmallMember(errorText, 'data')
  return isObject(data) && typeof data.uri === 'string' && Object.keys(data).length === 1
}

/** Rewords an error about the hop between gateway and server for the client, and replaces the code; `data` is kept. */
export function translateHopError ({ code: number, message }: RpcError, errorText: string): string {
  const data = memberOf(errorText, 'data')
  const text = number === modernErrorCode.missingCapability
    ? `The server needs a capability that was not declared to it: ${message}`
    : `The server rejected the form of Tool-Hub's request: ${message}`
  const error = JSON.stringify(
    { code: number === modernErrorCode.missingCapability ? rpcCode.invalidRequest : rpcCode.internal, message: text }
  )
  return data === undefined ? error : withMembers(error, { data })
}

// Since 2026-07-28, a tool's schemas may be any JSON Schema. Clients of earlier revisions accept only schemas of
// type `object` whose properties have object schemas, and reject a whole list because of one tool with another schema.
// Servers of earlier revisions may list such tools, too.

/** Boolean schemas and their equivalent objects. */
const asObjects: Readonly<Record<string, string>> = { true: '{}', false: '{"not":{}}' }

/**
 * Converts a tool for clients of revisions up to 2025-11-25. An `outputSchema` that these clients cannot read is
 * removed, since it is optional.
 * @param text the tool, as JSON text
 * @returns the same text if nothing changes; undefined if such clients cannot read the tool
 */
export function toLegacyTool (text: string): string | undefined {
  const input = memberOf(text, 'inputSchema')
  const inputSchema = input === undefined ? undefined : objectSchema(input, true)
  if (inputSchema === undefined) return undefined
  const output = memberOf(text, 'outputSchema')
  const outputSchema = output === undefined || externalRef.test(output) ? undefined : objectSchema(output, false)
  if (inputSchema === input && outputSchema === output) return text
  return withMembers(text, { inputSchema, outputSchema })
}

/** Matches a reference to another document. Clients that compile output schemas would fail to load that document. */
const externalRef = /"\$ref"\s*:\s*"[^#]/

/**
 * Converts a schema to the form of earlier revisions, with type `object`; undefined if that is impossible.
 * @param isObject whether a schema without a type describes an object
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

/** Replaces boolean schemas in `properties` by objects; undefined if any property is a string, a number or null. */
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

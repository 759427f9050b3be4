// What clients of earlier revisions get of a modern server's answers where theirs differ.
import { code, type RpcError } from '../errors.ts'
import { elementsOf, isObject, memberOf, smallMemberOf, withMembers } from '../json.ts'
import { modernCode } from './envelope.ts'

/**
 * The result of a tool for a client of an earlier revision: structured content that is no object, which such a client refuses with all the
 * rest, is told as text after what the server says, unless that has the same JSON already.
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

/** A text without the white space between the values of its JSON: so texts are compared, in which numbers have all their digits. */
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
 * Whether -32602 says that there is no such resource, for which clients of earlier revisions know a code of its own: its data is the URI,
 * and nothing else (SEP-2164).
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
  const error = JSON.stringify({ code: number === modernCode.missingCapability ? code.invalidRequest : code.internal, message: text })
  return data === undefined ? error : withMembers(error, { data })
}

// What clients of earlier revisions get of a modern server's answers where theirs differ.
import { code, type RpcError } from '../errors.ts'
import { elementsOf, isObject, memberOf, smallMemberOf, withMembers } from '../json.ts'
import { modernCode } from './envelope.ts'

/**
 * The result of a tool for a client of an earlier revision: structured content that is no object, which such a client refuses with all the
 * rest, is told as text, unless the server does so.
 */
export function withObject (result: string): string {
  if (!result.includes('"structuredContent"')) return result
  const value = memberOf(result, 'structuredContent')
  if (value === undefined || value.startsWith('{')) return result
  const isTold = elementsOf(memberOf(result, 'content') ?? '[]', 1).length > 0
  const content = isTold ? undefined : { content: JSON.stringify([{ type: 'text', text: value }]) }
  return withMembers(result, { structuredContent: undefined, ...content })
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

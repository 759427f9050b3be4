import { rpcCode, RpcError } from './errors.ts'
import { parseSmallMember, memberOf } from './json.ts'

export type RequestId = string | number

/**
 * Returns a key for a request of another program in a `RequestTable`. Numbers that JavaScript may not represent exactly
 * are compared as they were written, so that 9007199254740992 and 9007199254740993 are two ids.
 * @param idText the id as JSON text
 */
export const requestKeyOf = (id: RequestId, idText: string): RequestId =>
  typeof id === 'string' ? JSON.stringify(id) : Number.isSafeInteger(id) ? id : idText

/** Returns the key of the request that a `notifications/cancelled` names; undefined if it names none. */
export function cancelledKeyOf ({ params: { requestId }, paramsText }: Notification): RequestId | undefined {
  if (typeof requestId !== 'string' && typeof requestId !== 'number') return undefined
  return requestKeyOf(requestId, memberOf(paramsText, 'requestId') ?? '')
}

interface MessageBase {
  /** Whether a server's message contains `null` or `[]` outside strings. Undefined: not known. */
  hasNullOrEmptyArray?: boolean
}
/** A request. `params` is for reading, `paramsText` for relaying; `idText`: the id as the sender wrote it. */
export interface Request extends MessageBase {
  kind: 'request'
  id: RequestId
  idText: string
  method: string
  params: Record<string, unknown>
  paramsText: string
}
export interface Notification extends MessageBase {
  kind: 'notification', method: string, params: Record<string, unknown>, paramsText: string
}
/** An answer. Either `resultText` or `errorText` is set: the JSON text of its `result` or `error` member. */
export interface Response extends MessageBase {
  kind: 'response'
  id: RequestId | null
  resultText?: string
  errorText?: string
  /** A server's parsed result, for the check of that result. Undefined: not parsed, or already checked. */
  value?: unknown
  /** Whether the result reports a tool error. Undefined: not known. */
  isError?: boolean
}
export type Message = Request | Notification | Response

/** An invalid element of a batch: its id as JSON text (`null` if it has no valid id), and the error to answer with. */
export interface MalformedMessage { kind: 'malformed', idText: string, error: RpcError }

export const requestText = (id: RequestId, method: string, paramsText?: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)}${paramsMember(paramsText)}}`

export const notificationText = (method: string, paramsText?: string): string =>
  `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${paramsMember(paramsText)}}`

const paramsMember = (paramsText: string | undefined): string =>
  paramsText === undefined ? '' : `,"params":${paramsText}`

/** Serializes a successful answer; `idText` is the id as the requester wrote it. */
export const resultResponseText = (idText: string, result: string): string =>
  `{"jsonrpc":"2.0","id":${idText},"result":${result}}`

/** Serializes an error answer; `error` is the text of its `error` member, `idText` may be `null`. */
export const errorResponseText = (idText: string, error: string): string =>
  `{"jsonrpc":"2.0","id":${idText},"error":${error}}`

/** Creates an error from the text of an upstream's `error` member, and keeps that text to relay it unchanged. */
export function parseRpcError (text: string): RpcError {
  const number = parseSmallMember(text, 'code')
  const message = parseSmallMember(text, 'message')
  return new RpcError(
    typeof number === 'number' ? number : rpcCode.internal,
    typeof message === 'string' ? message : 'the upstream answered with an error',
    'upstream',
    text
  )
}

/** Whether a result reports a tool error (`isError`). @param output the result, as JSON text */
export const isToolErrorResult = (output: string): boolean =>
  output.includes('"isError"') && memberOf(output, 'isError') === 'true'

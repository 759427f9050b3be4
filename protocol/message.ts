import { code, RpcError } from './errors.ts'
import { smallMemberOf, memberOf } from './json.ts'

export type RequestId = string | number

interface MessageBase {
  /** Of a large message of a server: whether it has `null` or `[]` outside its strings. Undefined: not known. */
  hasGaps?: boolean
}
/** A request. `params` is for reading, `paramsText` for relaying; `idText` is the id as written, for the answer. */
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
/** An answer. It has exactly one of the two texts; `errorText` is the `error` object as received. */
export interface Response extends MessageBase {
  kind: 'response'
  id: RequestId | null
  resultText?: string
  errorText?: string
  /** The result of a server as it was parsed, until the answer is checked. Undefined: it was not. */
  value?: unknown
  /** Whether the result says that its tool failed; undefined if that has not been read. */
  isError?: boolean
}
export type Message = Request | Notification | Response

/** An invalid element of a batch: the error to answer with, and the id to answer to. */
export interface MalformedMessage { kind: 'malformed', idText: string, error: RpcError }

/** The text of a request. */
export const requestText = (id: RequestId, method: string, paramsText?: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)}${paramsMember(paramsText)}}`

/** The text of a notification. */
export const notificationText = (method: string, paramsText?: string): string =>
  `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${paramsMember(paramsText)}}`

const paramsMember = (paramsText: string | undefined): string =>
  paramsText === undefined ? '' : `,"params":${paramsText}`

/** The text of a successful answer; `idText` is the id as the requester wrote it. */
export const resultText = (idText: string, result: string): string =>
  `{"jsonrpc":"2.0","id":${idText},"result":${result}}`

/** The text of an error answer; `error` is the text of its `error` member, `idText` may be `null`. */
export const errorText = (idText: string, error: string): string => `{"jsonrpc":"2.0","id":${idText},"error":${error}}`

/** Creates the error for an upstream's answer from the text of its `error` member, which is relayed byte by byte. */
export function toRpcError (text: string): RpcError {
  const number = smallMemberOf(text, 'code')
  const message = smallMemberOf(text, 'message')
  return new RpcError(
    typeof number === 'number' ? number : code.internal,
    typeof message === 'string' ? message : 'the upstream answered with an error',
    'upstream',
    text
  )
}

/** Whether a result reports that its tool failed (`isError`). */
export const saysError = (output: string): boolean =>
  output.includes('"isError"') && memberOf(output, 'isError') === 'true'

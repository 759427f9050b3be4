import { code, RpcError } from './errors.ts'
import {
  countMembers,
  elementsOf,
  isDeeperThan,
  isObject,
  memberOf,
  membersOf,
  smallMemberOf,
  withMembers,
  withoutRepeats
} from './json.ts'
import { checkedNames, withoutLookalikes } from './lookalikes.ts'
import { copyOf, partOf, truncate, withoutMark } from './text.ts'

export type RequestId = string | number

interface Common {
  /** Of a large message: whether it has `null` or `[]`, outside of its strings. Undefined: nobody has looked. */
  hasGaps?: boolean
}
/** A request. `params` is for reading, `paramsText` for relaying; `idText` is the id as the sender wrote it, for the answer. */
export interface Request extends Common {
  kind: 'request'
  id: RequestId
  idText: string
  method: string
  params: Record<string, unknown>
  paramsText: string
}
export interface Notification extends Common { kind: 'notification', method: string, params: Record<string, unknown>, paramsText: string }
/** An answer. It has exactly one of the two texts; `errorText` is the `error` object as received. */
export interface Response extends Common { kind: 'response', id: RequestId | null, resultText?: string, errorText?: string }
export type Message = Request | Notification | Response

/** An element of a batch that is not a valid message: the error to answer, and the id to answer it under. */
export interface Malformed { kind: 'malformed', idText: string, error: RpcError }

/** Max characters that are told of an error that is no object. */
const longestMessage = 2_000

const isId = (id: unknown): id is RequestId => typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id))

/** Who wrote a message. Servers may leave out the version, and write `null` for members that are absent, as some of their libraries do. */
export type Sender = 'client' | 'server'

/**
 * Parses one JSON-RPC message, or a batch. Unknown members are ignored. An invalid element of a batch is an error of that element alone
 * (JSON-RPC 2.0, §6).
 * @param maxDepth max levels of nesting
 * @param maxBatch max elements of a batch
 * @throws RpcError -32700 when the text is not JSON; -32600 when it is not a JSON-RPC message or nested too deeply, or when the batch is
 * empty or too long
 */
export function parseMessage (
  written: string,
  maxDepth: number,
  maxBatch = Infinity,
  sender: Sender = 'client'
): Message | Array<Message | Malformed> {
  const text = withoutMark(written)
  // Checked before parsing: this is linear, and a parser needs long for deep JSON.
  if (isDeeperThan(text, maxDepth)) {
    throw notMessages.tooDeep(maxDepth)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw notMessages.notJson()
  }
  if (!Array.isArray(value)) return toMessage(value, text, sender)
  if (value.length === 0) throw notMessages.isEmpty()
  if (value.length > maxBatch) throw notMessages.isTooLong(maxBatch)
  return elementsOf(text).map((part, at) => {
    // Others of the batch may be large, and are over before it.
    const element = copyOf(part)
    try {
      return toMessage(value[at], element, sender)
    } catch (error) {
      return malformed(error, value[at], element)
    }
  })
}

/** What is answered to an element of a batch that is no message. @throws what is no RpcError */
export function malformed (error: unknown, value: unknown, text: string): Malformed {
  if (!(error instanceof RpcError)) throw error
  return { kind: 'malformed', idText: isObject(value) && isId(value.id) ? memberOf(text, 'id') ?? 'null' : 'null', error }
}

/** The errors of a text that is no message or batch, by what is wrong with it. */
export const notMessages = {
  tooDeep: (maxDepth: number) => new RpcError(code.invalidRequest, `Invalid request: JSON is nested deeper than ${maxDepth} levels`),
  notJson: () => new RpcError(code.parse, 'Parse error: the body is not valid JSON'),
  isEmpty: () => new RpcError(code.invalidRequest, 'Invalid request: the batch is empty'),
  isTooLong: (maxBatch: number) => new RpcError(code.invalidRequest, `Invalid request: the batch has more than ${maxBatch} elements`),
  isNoObject: () => new RpcError(code.invalidRequest, 'Invalid request: a message is a JSON object')
}

function toMessage (value: unknown, text: string, sender: Sender): Message {
  if (!isObject(value)) throw notMessages.isNoObject()
  const members = membersOf(text)
  const textOf = (key: string): string | undefined => {
    for (let at = members.length - 1; at >= 0; at--) {
      const member = members[at]
      if (member?.key === key) return partOf(text, member.start, member.end)
    }
    return undefined
  }
  return messageFromMembers(value, textOf, countMembers, sender)
}

/**
 * A message by its members.
 * @param value whose `params`, `result` and `error` are undefined where there are no such members
 * @param textOf the text of a member
 * @param sizeOf how many members the text of `params` has, repeated ones included, of those that `params` may have
 * @throws RpcError -32600
 */
export function messageFromMembers (
  value: Readonly<Record<string, unknown>>,
  textOf: (key: string) => string | undefined,
  sizeOf: (paramsText: string) => number,
  sender: Sender
): Message {
  const { method, params, result, error } = value
  const isServers = sender === 'server'
  if (value.jsonrpc !== '2.0' && !(isServers && lacksVersion(value))) {
    throw new RpcError(code.invalidRequest, 'Invalid request: "jsonrpc" must be "2.0"')
  }
  if (typeof method === 'string') {
    const known = paramsOf(params, isServers)
    const text = known === params ? textOf('params') ?? '{}' : '{}'
    const paramsText = readOnce(method, known, text, sizeOf(text))
    if (value.id === undefined || (isServers && value.id === null)) return { kind: 'notification', method, params: known, paramsText }
    if (!isId(value.id)) throw new RpcError(code.invalidRequest, 'Invalid request: "id" must be a string or a number')
    return { kind: 'request', id: value.id, idText: textOf('id') ?? 'null', method, params: known, paramsText }
  }
  if (method !== undefined && !(isServers && method === null)) {
    throw new RpcError(code.invalidRequest, 'Invalid request: "method" must be a string')
  }
  const id = isId(value.id) ? value.id : null
  const hasError = isObject(error) || (isServers && id !== null && error !== undefined && error !== null)
  if (result !== undefined && !(result === null && hasError)) return { kind: 'response', id, resultText: textOf('result') ?? 'null' }
  if (isObject(error)) return { kind: 'response', id, errorText: textOf('error') ?? '{}' }
  if (hasError) return { kind: 'response', id, errorText: errorFrom(textOf('error') ?? 'null') }
  throw new RpcError(code.invalidRequest, 'Invalid request: a message has a "method", a "result" or an "error"')
}

/** The error that is no object, but a text. */
function errorFrom (text: string): string {
  const message = truncate(text.startsWith('"') ? JSON.parse(text) as string : text, longestMessage)
  return JSON.stringify({ code: code.internal, message })
}

/** True for a message without the version of JSON-RPC. One that has neither that nor an id or a method is something else. */
const lacksVersion = ({ jsonrpc, id, method }: Readonly<Record<string, unknown>>): boolean =>
  (jsonrpc === undefined || jsonrpc === null) && (isId(id) || typeof method === 'string')

/** The params of a message; null is none. @throws RpcError -32600 */
function paramsOf (params: unknown, isServers: boolean): Record<string, unknown> {
  if (isObject(params)) return params
  const isAbsent = params === undefined || params === null || (isServers && Array.isArray(params) && params.length === 0)
  if (!isAbsent) throw new RpcError(code.invalidRequest, 'Invalid request: "params" must be an object')
  return {}
}

/**
 * The text of params with each member once, those of `ref` as well, and without lookalikes: what is passed on says nothing else than what
 * was checked here, whichever of two members another parser reads.
 */
function readOnce (method: string, params: Record<string, unknown>, paramsText: string, size: number): string {
  const hasRepeats = size > Object.keys(params).length
  const isOutermost = checkedNames(method).remove(params)
  const text = withoutLookalikes(method, params, hasRepeats ? withoutRepeats(paramsText) : paramsText, isOutermost)
  const { ref } = params
  if (!isObject(ref)) return text
  const refText = memberOf(text, 'ref') ?? '{}'
  return membersOf(refText).length > Object.keys(ref).length ? withMembers(text, { ref: withoutRepeats(refText) }) : text
}

/** The text of a request. */
export const requestText = (id: RequestId, method: string, paramsText?: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)}${paramsMember(paramsText)}}`

/** The text of a notification. */
export const notificationText = (method: string, paramsText?: string): string =>
  `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${paramsMember(paramsText)}}`

const paramsMember = (paramsText: string | undefined): string => paramsText === undefined ? '' : `,"params":${paramsText}`

/** The text of a successful answer; `idText` is the id as the requester wrote it. */
export const resultText = (idText: string, result: string): string => `{"jsonrpc":"2.0","id":${idText},"result":${result}}`

/** The text of an error answer; `error` is the text of its `error` member, `idText` may be `null`. */
export const errorText = (idText: string, error: string): string => `{"jsonrpc":"2.0","id":${idText},"error":${error}}`

/** The error of an upstream's answer, from the text of its `error` member. It is relayed with the same bytes. */
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

import { rpcCode, RpcError } from './errors.ts'
import {
  countMembers, elementsOf, isDeeperThan, isObject, memberOf, membersOf, withMembers, withoutDuplicateMembers,
  type Member
} from './json.ts'
import { scanJson, JsonTooDeep } from './json-scanner.ts'
import { guardedNamesOf, withoutLookalikes } from './lookalikes.ts'
import type { MalformedMessage, Message, RequestId } from './message.ts'
import { parseJsonText } from './parse-json-text.ts'
import { parseSimpleResponse } from './plain-answer.ts'
import { detachedCopy, largeTextLength, detachedSlice, truncate, withoutBom } from './text.ts'

/** The side that sent a message. A server's messages may lack `jsonrpc`, and have `null` in place of absent members. */
type Sender = 'client' | 'server'

/** A JSON object that may be a message: its members as values and as texts. */
interface ReadObject {
  /** `params`, `result` and `error` are undefined if absent. */
  readonly value: Readonly<Record<string, unknown>>
  readonly textOf: (key: string) => string | undefined
  /** Returns the number of members that were read into `value.params`, including duplicates. */
  readonly countParams: (paramsText: string) => number
}

/**
 * Parses one JSON-RPC message, or a batch. Unknown members are ignored. An invalid element of a batch does not affect
 * the others (JSON-RPC 2.0, section 6).
 * @param maxDepth max levels of nesting
 * @param maxBatch max elements of a batch
 * @throws RpcError -32700 if the text is not JSON; -32600 if it is not a JSON-RPC message or nested too deeply, or if
 * the batch is empty or too long
 */
export function parseMessage (
  written: string,
  maxDepth: number,
  maxBatch = Infinity,
  sender: Sender = 'client'
): Message | Array<Message | MalformedMessage> {
  const text = withoutBom(written)
  const parse = text.length > largeTextLength ? parseLarge : parseSmall
  return parse(text, maxDepth, maxBatch, sender)
}

function parseSmall (
  text: string, maxDepth: number, maxBatch: number, sender: Sender
): Message | Array<Message | MalformedMessage> {
  // Checked first, since `JSON.parse` is slow on deeply nested texts.
  if (isDeeperThan(text, maxDepth)) throw tooDeep(maxDepth)
  const answer = sender === 'server' ? parseSimpleResponse(text) : undefined
  if (answer) return answer
  let value: unknown
  try {
    value = parseJsonText(text)
  } catch {
    throw notJson()
  }
  if (!Array.isArray(value)) {
    const message = toMessage(readSmall(value, text), sender)
    const hasResult = message.kind === 'response' && message.resultText !== undefined
    if (hasResult && sender === 'server' && isObject(value)) message.value = value.result
    return message
  }
  checkBatch(value.length, maxBatch)
  return elementsOf(text).map((part, at) => {
    // The copy allows the other elements, which may be large, to be freed.
    const element = detachedCopy(part)
    return messageOrError(() => toMessage(readSmall(value[at], element), sender), () => value[at], element)
  })
}

/**
 * Parses a large text. Only members that the gateway reads become values, since the values of a text may take fifty
 * times as much memory as the text.
 */
function parseLarge (
  text: string, maxDepth: number, maxBatch: number, sender: Sender
): Message | Array<Message | MalformedMessage> {
  const scan = scanText(text, maxDepth, (key) => messageMembers.has(key), maxBatch)
  if (scan.kind !== 'array') {
    const message = toMessage(readLarge(text, scan, maxDepth), sender)
    // Only messages from servers are repaired.
    if (sender === 'server') message.hasNullOrEmptyArray = scan.hasNullOrEmptyArray
    return message
  }
  checkBatch(scan.size, maxBatch)
  return scan.members.map(({ start, end }) => {
    const element = detachedSlice(text, start, end)
    return messageOrError(() => {
      const message = parseMessage(element, maxDepth, 1, sender)
      if (Array.isArray(message)) throw notObject()
      return message
    }, () => element.length > largeTextLength ? undefined : parseJsonText(element), element)
  })
}

function scanText (
  text: string, maxDepth: number, isWanted: (key: string) => boolean, maxElements = 0
): ReturnType<typeof scanJson> {
  try {
    return scanJson(text, { maxDepth, isWanted, maxElements })
  } catch (error) {
    if (error instanceof JsonTooDeep) throw tooDeep(maxDepth)
    if (error instanceof SyntaxError) throw notJson()
    throw error
  }
}

/** Parses an element of a batch. @param valueOf returns the element's JSON value; called only if `read` throws */
function messageOrError (read: () => Message, valueOf: () => unknown, text: string): Message | MalformedMessage {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    const value = valueOf()
    return {
      kind: 'malformed', idText: isObject(value) && isId(value.id) ? memberOf(text, 'id') ?? 'null' : 'null', error
    }
  }
}

const tooDeep = (maxDepth: number): RpcError =>
  new RpcError(rpcCode.invalidRequest, `Invalid request: JSON is nested deeper than ${maxDepth} levels`)
const notJson = (): RpcError => new RpcError(rpcCode.parse, 'Parse error: the body is not valid JSON')
const notObject = (): RpcError => new RpcError(rpcCode.invalidRequest, 'Invalid request: a message is a JSON object')

/** Checks the number of elements in a batch. @throws RpcError -32600 */
function checkBatch (size: number, maxBatch: number): void {
  if (size === 0) throw new RpcError(rpcCode.invalidRequest, 'Invalid request: the batch is empty')
  if (size > maxBatch) {
    throw new RpcError(rpcCode.invalidRequest, `Invalid request: the batch has more than ${maxBatch} elements`)
  }
}

const textIn = (text: string, members: readonly Member[]) => (key: string): string | undefined => {
  const member = members.findLast((each) => each.key === key)
  return member && detachedSlice(text, member.start, member.end)
}

function readSmall (value: unknown, text: string): ReadObject {
  if (!isObject(value)) throw notObject()
  return { value, textOf: textIn(text, membersOf(text)), countParams: countMembers }
}

const messageMembers = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
/** The members of params that the gateway reads. */
const paramsMembers = new Set([
  'name', 'uri', 'arguments', '_meta', 'cursor', 'task', 'taskId', 'level', 'progressToken', 'requestId', 'reason',
  'elicitationId', 'ref',
  'protocolVersion', 'capabilities', 'clientInfo', 'url', 'mode', 'tools', 'requestState', 'inputResponses',
  'notifications', 'delivery', 'ttlMs'
])
/** Max length of a member that is parsed immediately, in characters. Longer members are parsed when accessed. */
const smallMember = 16 * 1024
/** Stands for a value that is not an object, and that the gateway does not read. */
const otherValue = 0

function readLarge (text: string, { kind, members }: ReturnType<typeof scanJson>, maxDepth: number): ReadObject {
  if (kind !== 'object') throw notObject()
  const textOf = textIn(text, members)
  const value: Record<string, unknown> = {}
  for (const key of ['jsonrpc', 'id', 'method']) {
    const member = textOf(key)
    // A longer value is invalid. It is replaced by an object, which is invalid here, too.
    if (member !== undefined) value[key] = member.length <= smallMember ? parseJsonText(member) : {}
  }
  for (const key of ['result', 'error']) {
    const member = textOf(key)
    if (member !== undefined) value[key] = member.startsWith('{') ? {} : member === 'null' ? null : otherValue
  }
  const params = textOf('params')
  if (params?.startsWith('{') !== true) {
    if (params !== undefined) value.params = params.length <= smallMember ? parseJsonText(params) : otherValue
    return { value, textOf, countParams: () => 0 }
  }
  const names = guardedNamesOf(String(value.method))
  const read = scanText(params, maxDepth, (key) => paramsMembers.has(key) || names.isLookalike(key)).members
  value.params = largeParams(params, read)
  return { value, textOf, countParams: () => read.length }
}

/**
 * Builds the params of a large message from the members that the gateway reads. Members longer than `smallMember` are
 * parsed when they are accessed.
 */
function largeParams (text: string, members: readonly Member[]): Record<string, unknown> {
  const params: Record<string, unknown> = {}
  for (const { key, start, end } of members) {
    let parsed: { readonly value: unknown } | undefined
    const get = (): unknown => (parsed ??= { value: parseJsonText(text.slice(start, end)) }).value
    if (end - start <= smallMember) get()
    Object.defineProperty(params, key, { configurable: true, enumerable: true, get })
  }
  return params
}

const isId = (id: unknown): id is RequestId => typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id))

/** Converts a parsed object to a message. @throws RpcError -32600 */
function toMessage ({ value, textOf, countParams }: ReadObject, sender: Sender): Message {
  const { method, params, result, error } = value
  const isFromServer = sender === 'server'
  if (value.jsonrpc !== '2.0' && !(isFromServer && lacksVersion(value))) {
    throw new RpcError(rpcCode.invalidRequest, 'Invalid request: "jsonrpc" must be "2.0"')
  }
  if (typeof method === 'string') {
    const known = paramsOf(params, isFromServer)
    const text = known === params ? textOf('params') ?? '{}' : '{}'
    const paramsText = normalizeParams(method, known, text, countParams(text))
    if (value.id === undefined || (isFromServer && value.id === null)) {
      return { kind: 'notification', method, params: known, paramsText }
    }
    if (!isId(value.id)) {
      throw new RpcError(rpcCode.invalidRequest, 'Invalid request: "id" must be a string or a number')
    }
    return { kind: 'request', id: value.id, idText: textOf('id') ?? 'null', method, params: known, paramsText }
  }
  if (method !== undefined && !(isFromServer && method === null)) {
    throw new RpcError(rpcCode.invalidRequest, 'Invalid request: "method" must be a string')
  }
  const id = isId(value.id) ? value.id : null
  const hasError = isObject(error) || (isFromServer && id !== null && error !== undefined && error !== null)
  if (result !== undefined && !(result === null && hasError)) {
    return { kind: 'response', id, resultText: textOf('result') ?? 'null' }
  }
  if (isObject(error)) return { kind: 'response', id, errorText: textOf('error') ?? '{}' }
  if (hasError) return { kind: 'response', id, errorText: toErrorObject(textOf('error') ?? 'null') }
  throw new RpcError(rpcCode.invalidRequest, 'Invalid request: a message has a "method", a "result" or an "error"')
}

/** Max length of the message for an error that is not an object, in characters. */
const maxErrorMessage = 2_000

/** Creates an error object, as JSON text, with the text of an error that is not an object as its message. */
function toErrorObject (text: string): string {
  const message = truncate(text.startsWith('"') ? JSON.parse(text) as string : text, maxErrorMessage)
  return JSON.stringify({ code: rpcCode.internal, message })
}

/** Whether an object is a message without `jsonrpc`: it has an id or a method. */
const lacksVersion = ({ jsonrpc, id, method }: Readonly<Record<string, unknown>>): boolean =>
  (jsonrpc === undefined || jsonrpc === null) && (isId(id) || typeof method === 'string')

/** Returns a message's params; `{}` if they are absent, `null`, or a server's `[]`. @throws RpcError -32600 */
function paramsOf (params: unknown, isFromServer: boolean): Record<string, unknown> {
  if (isObject(params)) return params
  const isAbsent =
    params === undefined || params === null || (isFromServer && Array.isArray(params) && params.length === 0)
  if (!isAbsent) throw new RpcError(rpcCode.invalidRequest, 'Invalid request: "params" must be an object')
  return {}
}

/**
 * Removes duplicate members (also in `ref`) and lookalikes from params, so that any server reads the values that were
 * checked.
 * @param size the number of members, including duplicates
 * @returns the text; lookalikes are removed from `params`, too
 */
function normalizeParams (method: string, params: Record<string, unknown>, paramsText: string, size: number): string {
  const hasRepeats = size > Object.keys(params).length
  const isOutermost = guardedNamesOf(method).remove(params)
  const text = withoutLookalikes(
    method, params, hasRepeats ? withoutDuplicateMembers(paramsText) : paramsText, isOutermost
  )
  const { ref } = params
  if (!isObject(ref)) return text
  const refText = memberOf(text, 'ref') ?? '{}'
  return membersOf(refText).length > Object.keys(ref).length
    ? withMembers(text, { ref: withoutDuplicateMembers(refText) })
    : text
}

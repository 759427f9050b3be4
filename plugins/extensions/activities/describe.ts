import { randomUUID } from 'node:crypto'
import type { Activity } from '../../../db/ports.ts'
import { RpcError } from '../../../protocol/errors.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { saysError } from '../../../protocol/message.ts'
import { authorKey, type Principal } from '../../settings/index.ts'
import type { FinishedCall } from '../../gateway/index.ts'
import { limits } from '../../base/limits/index.ts'

/** Methods whose calls are recorded, once they are over. The tool of a call that is no tool's is named by its method. */
const recorded: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export const isRecorded = ({ exchange, outcome }: FinishedCall): boolean =>
  recorded.has(exchange.method) && outcome !== 'input_required'

/** A part of a longest secret that may stand at the end of a text that is cut, in characters. */
const margin = 2_048
/** Length of a payload, in characters, up to which it need not be measured, nor copied. */
const small = 1_024
/** Max size of a failed result that is searched for its message, in characters. */
const maxParsed = 256 * 1024

export interface DescribeOptions {
  /** Whether inputs and outputs are recorded. */
  readonly payloads: boolean
  /** A text of a server without the secrets of its configuration. */
  readonly redact: (server: string, text: string) => string
}

/** The record of a call. Its texts have no secrets of the server's configuration, and are at most as long as `limits.activities` says. */
export function describeCall (call: FinishedCall, { payloads, redact }: DescribeOptions): Activity {
  const { exchange: { view: { principal, scope }, method, address, paramsText }, provider, item, duration, output, error } = call
  const shown = (text: string | undefined, max: number): string | undefined =>
    text === undefined ? undefined : truncateBytes(redact(provider, text.slice(0, max + margin)), max)
  /** @param whole the text that it is a part of */
  const payload = (text: string | undefined, whole = ''): string | undefined =>
    text !== undefined && Math.max(text.length, whole.length) <= small ? redact(provider, text) : shown(text, limits.activities.payload)
  const isError = output !== undefined && error === undefined && saysError(output)
  const message = error === undefined ? isError ? messageOf(output, payloads) : undefined : messageOfError(error, payloads)
  return {
    id: newId(),
    timestamp: Math.round(Date.now() - duration),
    server: provider,
    tool: method === 'tools/call' ? item ?? '' : method,
    duration,
    status: error !== undefined || isError ? 'error' : 'success',
    input: payloads ? payload(inputOf(method, paramsText), paramsText) : undefined,
    output: payloads ? payload(output) : undefined,
    group: scope.kind === 'group' ? scope.name : undefined,
    username: usernameOf(principal),
    ...authorKey(principal),
    clientId: principal.kind === 'access-token' ? principal.credential?.name : undefined,
    sourceIp: address,
    errorMessage: shown(message, limits.activities.message)
  }
}

/** A UUID that begins with the time (RFC 9562, version 7), so that an index of ids grows at its end only. */
function newId (): string {
  const now = Date.now()
  if (now !== idsBegin.time) {
    const time = now.toString(16).padStart(12, '0')
    idsBegin = { time: now, text: `${time.slice(0, 8)}-${time.slice(8)}-7` }
  }
  return `${idsBegin.text}${randomUUID().slice(15)}`
}

/** How the ids of a millisecond begin. */
let idsBegin = { time: 0, text: '' }

/** Members of params that are not recorded: they belong to the hop and to rounds of questions; the state in them is the server's secret. */
const ofTheWay = { _meta: undefined, inputResponses: undefined, requestState: undefined }

/** A tool's arguments, or the params of another method. */
const inputOf = (method: string, paramsText: string): string | undefined =>
  method === 'tools/call' ? memberOf(paramsText, 'arguments') : withMembers(paramsText, ofTheWay)

/** The user of a call. A system key acts as its owner, and as `system` without one; undefined: the caller has no name. */
export const usernameOf = ({ username, kind, user, key }: Principal): string | undefined =>
  username ?? (kind === 'system-key' ? user === key ? 'system' : user : undefined)

/** The first text of a failed result. */
function messageOf (output: string, payloads: boolean): string {
  const content = payloads && output.length <= maxParsed ? (JSON.parse(output) as { content?: unknown }).content : undefined
  const texts: unknown[] = Array.isArray(content) ? content.map((block: unknown) => isObject(block) ? block.text : undefined) : []
  return texts.find((text): text is string => typeof text === 'string') ?? 'The tool failed'
}

/** What an error says of itself, without what a server may have repeated of a payload, where these are not recorded. */
export function messageOfError (error: unknown, payloads: boolean): string {
  if (!(error instanceof RpcError)) return 'Internal error'
  return payloads || error.reason !== 'upstream' ? error.message : `The server answered with the error ${error.code}`
}

/**
 * The beginning of a text, up to so many bytes and to the end of a character. The result is a copy, since a part of a text keeps all of it
 * in memory.
 */
export function truncateBytes (text: string, max: number): string {
  const bytes = Buffer.from(text.length > max ? text.slice(0, max) : text)
  let end = Math.min(bytes.length, max)
  // Bytes 10xxxxxx continue a character.
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

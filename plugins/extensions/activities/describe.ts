import { randomUUID } from 'node:crypto'
import type { Activity } from '../../../db/ports/activities.ts'
import { RuleRefusalError, RpcError } from '../../../protocol/errors.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { toBearerKeyIdentity, type Principal } from '../../settings/index.ts'
import type { FinishedCall } from '../../gateway/index.ts'
import { extensionsLimits } from '../limits.ts'

/**
 * The methods whose calls are recorded. For methods other than `tools/call`, the record's tool is the name of the
 * method.
 */
const recordedMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/**
 * Whether a finished call is recorded. A call that ended with `input_required` is not: the client continues it with
 * another request.
 */
export const isRecordableCall = ({ exchange, outcome }: FinishedCall): boolean =>
  recordedMethods.has(exchange.method) && outcome !== 'input_required'

/**
 * Number of characters beyond the max length that are still redacted before the text is truncated, so that no part of a
 * secret remains.
 */
const redactionMargin = 2_048
/** Payloads up to this length, in characters, are never too large in bytes. */
const maxUncutPayload = 1_024
/** Max length of a failed result that is parsed for its message, in characters. */
const maxParsed = 256 * 1024

export interface ToActivityOptions {
  /** Whether inputs and outputs are recorded. */
  readonly includesPayloads: boolean
  /** Masks the secrets of a server's configuration in a text. */
  readonly redact: (server: string, text: string) => string
}

/** Creates the record of a call. Its texts are redacted, and truncated to `extensionsLimits.activities`. */
export function toActivity (call: FinishedCall, { includesPayloads: payloads, redact }: ToActivityOptions): Activity {
  const {
    exchange: { view: { principal, scope }, method, address, paramsText },
    provider, item, duration, output, isToolError, error, policy, guards
  } = call
  const redactAndTruncate = (text: string | undefined, max: number): string | undefined =>
    text === undefined ? undefined : truncateBytes(redact(provider, text.slice(0, max + redactionMargin)), max)
  /**
   * Redacts a payload, and truncates it if it is too long.
   * @param whole the params that contain the payload. If they are long, the payload is copied by `redactAndTruncate`,
   *   since a slice would keep all of them in memory
   */
  const payload = (text: string | undefined, whole = ''): string | undefined =>
    text !== undefined && Math.max(text.length, whole.length) <= maxUncutPayload
      ? redact(provider, text)
      : redactAndTruncate(text, extensionsLimits.activities.payload)
  const message = error === undefined
    ? isToolError && output !== undefined ? messageOf(output, payloads) : undefined
    : recordedErrorMessage(error, payloads)
  return {
    id: newId(),
    timestamp: Math.round(Date.now() - duration),
    server: provider,
    tool: method === 'tools/call' ? item ?? '' : method,
    duration,
    status: error !== undefined || isToolError ? 'error' : 'success',
    input: payloads ? payload(inputOf(method, paramsText), paramsText) : undefined,
    output: payloads ? payload(output) : undefined,
    group: scope.kind === 'group' ? scope.name : undefined,
    username: usernameOf(principal),
    ...toBearerKeyIdentity(principal),
    clientId: principal.kind === 'access-token' ? principal.credential?.name : undefined,
    sourceIp: address,
    errorMessage: redactAndTruncate(message, extensionsLimits.activities.message),
    policy,
    guards,
    refused: error instanceof RuleRefusalError ? true : undefined
  }
}

/** Creates a UUID version 7 (RFC 9562). It begins with the time, so that new ids are added at the end of an index. */
function newId (): string {
  const now = Date.now()
  if (now !== currentIdPrefix.time) {
    const time = now.toString(16).padStart(12, '0')
    currentIdPrefix = { time: now, text: `${time.slice(0, 8)}-${time.slice(8)}-7` }
  }
  return `${currentIdPrefix.text}${randomUUID().slice(15)}`
}

/** The current millisecond, and the prefix of all ids made in it. */
let currentIdPrefix = { time: 0, text: '' }

/**
 * Members of params that are not recorded: metadata of the connection, and those of multi-round requests, whose state
 * is a secret of the server.
 */
const unrecordedMembers = { _meta: undefined, inputResponses: undefined, requestState: undefined }

/** Returns a tool's arguments, or the params of another method. */
const inputOf = (method: string, paramsText: string): string | undefined =>
  method === 'tools/call' ? memberOf(paramsText, 'arguments') : withMembers(paramsText, unrecordedMembers)

/** The username in records of calls with the operator's system keys. */
export const operatorUsername = 'system'

/** Returns the username of a caller; for a system key, its owner or `system`; undefined for a caller without a name. */
export const usernameOf = ({ username, kind, user, key }: Principal): string | undefined =>
  username ?? (kind === 'system-key' ? user === key ? operatorUsername : user : undefined)

/**
 * Returns the first text of a result with `isError`; a fixed text if it has none, or payloads are not recorded.
 * @param output the result as JSON text
 */
function messageOf (output: string, payloads: boolean): string {
  const isParsed = payloads && output.length <= maxParsed
  const content = isParsed ? (JSON.parse(output) as { content?: unknown }).content : undefined
  const texts: unknown[] = Array.isArray(content)
    ? content.map((block: unknown) => isObject(block) ? block.text : undefined)
    : []
  return texts.find((text): text is string => typeof text === 'string') ?? 'The tool failed'
}

/**
 * Returns the message of an error.
 * @param payloads whether payloads are recorded; if not, a message from a server is replaced, since it may quote a
 *   payload
 */
export function recordedErrorMessage (error: unknown, payloads: boolean): string {
  if (!(error instanceof RpcError)) return 'Internal error'
  return payloads || error.reason !== 'upstream' ? error.message : `The server answered with the error ${error.code}`
}

/**
 * Cuts a text to at most `max` bytes of UTF-8, at a character boundary. The result is a copy, since a slice would keep
 * the whole text in memory.
 */
export function truncateBytes (text: string, max: number): string {
  const bytes = Buffer.from(text.length > max ? text.slice(0, max) : text)
  let end = Math.min(bytes.length, max)
  // Bytes 10xxxxxx are continuation bytes.
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

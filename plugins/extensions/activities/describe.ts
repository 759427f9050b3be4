import { randomUUID } from 'node:crypto'
import type { Activity } from '../../../db/ports/activities.ts'
import { RuleRefusalError, RpcError } from '../../../protocol/errors.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { redactionMargin } from '../../base/secrets/index.ts'
import { teamReference, toBearerKeyIdentity, type Principal } from '../../settings/index.ts'
import type { FinishedCall } from '../../gateway/index.ts'
import { extensionsLimits } from '../limits.ts'

/**
 * The methods whose calls are recorded. In records of methods other than `tools/call`, `tool` is the name of the
 * method.
 */
const recordedMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/**
 * Whether a finished call is recorded. A call that ended with `input_required` is not: the client continues it with
 * another request.
 */
export const isRecordableCall = ({ exchange, outcome }: FinishedCall): boolean =>
  recordedMethods.has(exchange.method) && outcome !== 'input_required'

/** A payload of at most this many characters is certainly within the limit in bytes. */
const maxUncutPayload = 1_024
/** Max length of a result with `isError` that is parsed to find its message, in characters. */
const maxParsed = 256 * 1024

export interface ToActivityOptions {
  /** Whether inputs and outputs are recorded. */
  readonly includesPayloads: boolean
  /** Masks secrets in a text, including the secrets in the server's configuration. */
  readonly redact: (server: string, text: string) => string
}

/** Creates the record of a call. Inputs, outputs and error messages are redacted, and truncated to their limits. */
export function toActivity (call: FinishedCall, { includesPayloads: payloads, redact }: ToActivityOptions): Activity {
  const {
    exchange: { view: { principal, scope }, method, address, paramsText },
    provider, item, duration, output, isToolError, error, policy, guards
  } = call
  const redactAndTruncate = (text: string | undefined, max: number): string | undefined =>
    text === undefined ? undefined : truncateBytes(redact(provider, text.slice(0, max + redactionMargin)), max)
  /**
   * Redacts a payload, and truncates it if it is too long.
   * @param whole the text of which the payload is a slice. If it is long, the payload is copied by `redactAndTruncate`,
   *   since a slice would keep the whole text in memory
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

/** Creates a UUID version 7 (RFC 9562), which begins with the time: new ids are added at the end of an index. */
function newId (): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/**
 * Members of params that are not recorded: metadata of the connection, the user's input for multi-round requests, and
 * the state of these requests, which is the server's secret.
 */
const unrecordedMembers = { _meta: undefined, inputResponses: undefined, requestState: undefined }

/** Returns the input to record, as JSON text: the arguments of a tool, or the params of another method. */
const inputOf = (method: string, paramsText: string): string | undefined =>
  method === 'tools/call' ? memberOf(paramsText, 'arguments') : withMembers(paramsText, unrecordedMembers)

/** The username in records of calls with the operator's system keys. */
export const operatorUsername = 'system'

/**
 * Returns the username of a caller; for a system key, the owner of the key, or `operatorUsername`; undefined for a
 * caller without a user.
 */
export const usernameOf = ({ username, kind, user, key }: Principal): string | undefined =>
  username ?? (kind === 'system-key' ? user === key ? operatorUsername : user : undefined)

/** Returns the name under which a caller is counted and shown: the username, or `@` and the team that owns the key. */
export const callerNameOf = (principal: Principal): string | undefined =>
  usernameOf(principal) ?? (principal.team === undefined ? undefined : teamReference(principal.team))

/**
 * Returns the first text of a result with `isError`; a fixed text if there is none, if the result is too long, or if
 * payloads are not recorded.
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
 * Returns the message of an error, for the record of a call.
 * @param payloads whether payloads are recorded; if not, a message from a server is replaced by a fixed text, since it
 *   may quote a payload
 */
export function recordedErrorMessage (error: unknown, payloads: boolean): string {
  if (!(error instanceof RpcError)) return 'Internal error'
  return payloads || error.reason !== 'upstream' ? error.message : `The server answered with the error ${error.code}`
}

const encoder = new TextEncoder()

/**
 * Truncates a text to at most `max` bytes of UTF-8, at a character boundary. Returns a copy, since a slice would keep
 * the whole text in memory.
 */
export function truncateBytes (text: string, max: number): string {
  const bytes = Buffer.allocUnsafe(Math.min(max, 3 * text.length))
  return bytes.toString('utf8', 0, encoder.encodeInto(text, bytes).written)
}

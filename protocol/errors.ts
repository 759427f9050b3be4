// All JSON-RPC errors that the gateway makes itself. Errors of upstreams are relayed unchanged and are not listed here.

/** Codes of JSON-RPC 2.0, of MCP, and of the MCP SDKs where they agree on one. */
export const code = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** The request cannot be served in this form: a missing session id, a foreign Origin, a wrong Accept. */
  badRequest: -32000,
  /** Unknown session; also a request that timed out, or whose upstream is not connected. */
  unavailable: -32001,
  /** MCP, to 2025-11-25: there is no such resource. */
  resourceNotFound: -32002,
  /** MCP 2025-11-25: an elicitation with an address has to be completed first. */
  urlElicitationRequired: -32042
} as const

/**
 * The cause of an error, for programs: code distinguishes errors by this, never by their message. `request` the request
 * is not valid · `unknown-tool`, `unknown-prompt`, `unknown-resource` the view shows no such item · `not-connected` the
 * provider cannot be reached now · `timeout` the provider did not answer in time · `no-answer` the request was sent,
 * and its answer is lost · `upstream` the provider's own error, relayed · `cancelled` the client does not wait for the
 * answer any more · `limit` a bound is reached · `share` the caller has used up its share of a bound · `internal` a
 * fault in the gateway
 */
export type Reason =
  'request' | 'unknown-tool'
    | 'unknown-prompt' | 'unknown-resource' | 'not-connected' | 'timeout' | 'no-answer' | 'upstream' |
  'cancelled' | 'limit' | 'share' | 'internal'

/** An error that is sent to the peer as JSON-RPC `error`. */
export class RpcError extends Error {
  readonly code: number
  readonly reason: Reason
  /** The `error` object as an upstream wrote it; undefined for errors of the gateway's own. */
  readonly #text: string | undefined

  constructor (code: number, message: string, reason: Reason = 'request', text?: string) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.reason = reason
    this.#text = text
  }

  /** The text of the `error` member. */
  toText (): string {
    return this.#text ?? JSON.stringify({ code: this.code, message: this.message })
  }
}

/**
 * The reason why a transport delivered no answer to a request: `unreachable` the request was never sent · `expired` the
 * upstream does not know the session any more, so the request did not run · `unauthorized` the upstream requires
 * credentials · `refused` the HTTP status is an error · `broken` the request may have run · `timeout` the deadline
 * passed · `closed` the gateway ended the link · `no-room` the gateway has no memory left for the answer · `share-used`
 * the caller has used up its share of it
 */
export type UpstreamFault =
  'unreachable' | 'expired' | 'unauthorized' | 'refused' | 'broken' | 'timeout' | 'closed' | 'no-room' |
  'share-used'

/** The messages for clients where the message of the error is for operators only. */
const messages = {
  unreachable: 'it cannot be reached',
  expired: 'its session has ended',
  unauthorized: 'the upstream wants credentials (HTTP 401)',
  refused: 'it refused the request',
  broken: 'the connection to it broke',
  timeout: 'no answer in time',
  'no-room': 'the gateway has no memory left for its answer; try again later',
  'share-used': 'you have as many large answers in flight as one caller may while the gateway is busy; try again later'
} as const

/** The error for an answer without memory for it. @param isOwners whether its owner has used up its share */
export const noRoom = (isOwners = false): UpstreamError => {
  const fault = isOwners ? 'share-used' : 'no-room'
  return new UpstreamError(fault, messages[fault], { isPublic: true })
}

/** More about the failure of an upstream. */
interface FailureDetails {
  /** For those who manage the server (the last lines of its stderr); not shown to its clients. */
  readonly detail?: string
  /** The HTTP status, where `fault` is `refused` or `broken` because of it. */
  readonly status?: number
  /** True: the message holds no address, path or DNS answer, and may be shown to clients. */
  readonly isPublic?: boolean
}

/** A failure to get an answer of an upstream, with a message for the operator. */
export class UpstreamError extends Error {
  readonly fault: UpstreamFault
  readonly detail: string
  readonly status: number | undefined
  readonly #isPublic: boolean

  constructor (fault: UpstreamFault, message: string, { detail = '', status, isPublic = false }: FailureDetails = {}) {
    super(message)
    this.name = 'UpstreamError'
    this.fault = fault
    this.detail = detail
    this.status = status
    this.#isPublic = isPublic
  }

  /** The same failure, with more for those who manage the server, unless it has that. */
  withDetail (detail: string): UpstreamError {
    const { fault, message, status } = this
    return this.detail === '' ? new UpstreamError(fault, message, { detail, status, isPublic: this.#isPublic }) : this
  }

  /** The message for clients, who are told no address, path or DNS answer: those are for who manages the server. */
  get messageForClients (): string {
    const { fault, message, status } = this
    if (fault === 'closed' || this.#isPublic) return message
    return status !== undefined ? `it answered HTTP ${status}` : messages[fault]
  }

  /** True when the request certainly did not run, so that it may be sent again. */
  get didNotRun (): boolean {
    return this.fault === 'unreachable' || this.fault === 'expired' || this.fault === 'unauthorized'
  }
}

// The errors that clients receive as JSON-RPC errors, and the failures of upstreams that cause some of them.

/** Error codes of JSON-RPC 2.0, of MCP, and those that the MCP SDKs share. */
export const rpcCode = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** The request is malformed at the transport level (such as no session id), or a rule or limit refuses it. */
  badRequest: -32000,
  /** The session is unknown, the request timed out, the upstream is not connected, or a share of a limit is used up. */
  unavailable: -32001,
  /** MCP up to 2025-11-25: the resource does not exist. */
  resourceNotFound: -32002,
  /** MCP 2025-11-25: the user must complete a URL elicitation first. */
  urlElicitationRequired: -32042
} as const

/**
 * The cause of an error, for code that must tell errors apart. `request`: the request is not valid · `unknown-tool`,
 * `unknown-prompt`, `unknown-resource`: the view has no such item · `not-connected`: the provider is unreachable ·
 * `timeout`: the provider did not answer in time · `no-answer`: the request was sent, but its answer is lost ·
 * `upstream`: the provider's own error, relayed · `cancelled`: the client no longer waits for the answer · `refused`:
 * an operator's rule forbids the request · `quota`: a quota set by the operator is used up · `limit`: a limit is
 * reached · `share`: the caller has used up its share of a limit · `internal`: a fault of the gateway
 */
export type ErrorReason =
  'request' | 'unknown-tool' | 'unknown-prompt' | 'unknown-resource' | 'not-connected' | 'timeout' | 'no-answer' |
  'upstream' | 'cancelled' | 'refused' | 'quota' | 'limit' | 'share' | 'internal'

/** An error that is sent as the member `error` of a JSON-RPC answer. */
export class RpcError extends Error {
  readonly code: number
  readonly reason: ErrorReason
  /**
   * The text of the `error` member if an upstream sent it, or if it has `data`; undefined: made of code and message.
   */
  readonly #text: string | undefined

  constructor (code: number, message: string, reason: ErrorReason = 'request', text?: string) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.reason = reason
    this.#text = text
  }

  /** Serializes the error as the `error` member. */
  toText (): string {
    return this.#text ?? JSON.stringify({ code: this.code, message: this.message })
  }
}

/**
 * Thrown for a request that an operator's rule refuses. A tool call is answered with a tool error, which the model can
 * read (`toRefusedToolResult`), any other MCP request with a JSON-RPC error, and a plain HTTP request with the status
 * 403 or 429.
 */
export class RuleRefusalError extends RpcError {
  /** Seconds until the request may be repeated, if known. */
  readonly retryAfter: number | undefined

  /** @param rule the kind of rule @param message the text that the caller is shown */
  constructor (rule: 'policy' | 'guard' | 'quota', message: string, { retryAfter }: { retryAfter?: number } = {}) {
    super(rpcCode.badRequest, message, rule === 'quota' ? 'quota' : 'refused')
    this.name = 'Refusal'
    this.retryAfter = retryAfter
  }
}

/** Creates the result of a refused tool call, as JSON text; undefined for other errors and methods. */
export const toRefusedToolResult = (method: string, error: unknown): string | undefined =>
  error instanceof RuleRefusalError && method === 'tools/call'
    ? JSON.stringify({ content: [{ type: 'text', text: error.message }], isError: true })
    : undefined

/**
 * Why a transport delivered no answer to a request. `unreachable`: the request was never sent · `expired`: the upstream
 * no longer knows the session, so the request did not run · `unauthorized`: the upstream requires credentials ·
 * `refused`: the upstream refused the request, or cannot be used as configured · `broken`: the request may have run ·
 * `timeout`: the deadline passed · `closed`: the gateway closed the link, or the client no longer waits · `no-room`:
 * the gateway has no memory for the answer · `share-used`: the caller has used up its share of that memory
 */
export type UpstreamFault =
  'unreachable' | 'expired' | 'unauthorized' | 'refused' | 'broken' | 'timeout' | 'closed' | 'no-room' |
  'share-used'

/** Messages for clients, used when an error's own message is for operators only. */
const publicMessages = {
  unreachable: 'it cannot be reached',
  expired: 'its session has ended',
  unauthorized: 'the upstream requires credentials (HTTP 401)',
  refused: 'it refused the request',
  broken: 'the connection to it was lost',
  timeout: 'no answer in time',
  'no-room': 'the gateway has no memory left for its answer; try again later',
  'share-used': 'you have reached your share of large results while the gateway is busy; try again later'
} as const

/**
 * Creates the error for an answer that the gateway has no memory for.
 * @param isOwnerLimit whether the request's owner has used up its share of that memory
 */
export const outOfMemoryError = (isOwnerLimit = false): UpstreamError => {
  const fault = isOwnerLimit ? 'share-used' : 'no-room'
  return new UpstreamError(fault, publicMessages[fault], { isPublic: true })
}

interface FailureDetails {
  /** Details for the server's managers (the last lines of the server's stderr), never shown to clients. */
  readonly detail?: string
  /** The HTTP status that caused the fault. */
  readonly status?: number
  /** Whether clients may see the message: it contains no address, path or DNS answer. */
  readonly isPublic?: boolean
  /** Whether the server answered, but the answer is unusable. */
  readonly isAnswered?: boolean
}

/** Why a request fails whose client can no longer see the server. */
export const lostServerClause = 'it was removed, renamed or disabled, or access was withdrawn'

/** Thrown if an upstream gives no answer, or an unusable one. The message is for operators. */
export class UpstreamError extends Error {
  readonly fault: UpstreamFault
  readonly detail: string
  readonly status: number | undefined
  readonly isAnswered: boolean
  readonly #isPublic: boolean

  constructor (
    fault: UpstreamFault,
    message: string,
    { detail = '', status, isPublic = false, isAnswered = false }: FailureDetails = {}
  ) {
    super(message)
    this.name = 'UpstreamError'
    this.fault = fault
    this.detail = detail
    this.status = status
    this.isAnswered = isAnswered
    this.#isPublic = isPublic
  }

  /** Returns the same failure with `detail`, unless it already has one. */
  withDetail (detail: string): UpstreamError {
    const { fault, message, status, isAnswered } = this
    return this.detail === ''
      ? new UpstreamError(fault, message, { detail, status, isPublic: this.#isPublic, isAnswered })
      : this
  }

  /** The message for clients, without addresses, paths and DNS answers, which only the server's managers may see. */
  get messageForClients (): string {
    const { fault, message, status } = this
    if (fault === 'closed' || this.#isPublic) return message
    return status !== undefined ? `it answered HTTP ${status}` : publicMessages[fault]
  }

  /** Whether the request certainly did not run and may therefore be sent again. */
  get didNotRun (): boolean {
    return this.fault === 'unreachable' || this.fault === 'expired' || this.fault === 'unauthorized'
  }
}

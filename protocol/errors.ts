// Every JSON-RPC error the gateway makes itself, in one list. An upstream's own error is relayed as it came and is not here.

/** Codes of JSON-RPC 2.0, of MCP, and of the MCP SDKs where they agree on one. */
export const code = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** No session id where one is needed, a foreign Origin, a wrong Accept: the request cannot be served as it stands. */
  badRequest: -32000,
  /** Unknown session, and a request that timed out or whose upstream is away. */
  unavailable: -32001,
  /** MCP, to 2025-11-25: there is no such resource. */
  resourceNotFound: -32002
} as const

/**
 * What an error is about, for programs: errors are told apart by this, never by their sentence.
 * `request` the request is not valid · `unknown-tool`, `unknown-prompt`, `unknown-resource` the view shows no such item ·
 * `not-connected` the provider cannot be asked now · `timeout` it was asked, and did not answer in time · `no-answer` it was asked, and
 * the answer is lost · `upstream` the provider's own error, relayed · `cancelled` the client wants no answer any more ·
 * `limit` a bound is reached · `internal` a fault of ours
 */
export type Reason =
  'request' | 'unknown-tool' | 'unknown-prompt' | 'unknown-resource' | 'not-connected' | 'timeout' | 'no-answer' | 'upstream' |
  'cancelled' | 'limit' | 'internal'

/** An error that is answered to the peer as JSON-RPC `error`. */
export class RpcError extends Error {
  readonly code: number
  readonly reason: Reason
  /** The `error` object as an upstream wrote it, where it is one of an upstream. */
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
 * Why a transport could not bring an answer:
 * `unreachable` it was never sent · `expired` the upstream no longer knows our session, so it did not run ·
 * `unauthorized` the upstream wants credentials · `refused` an HTTP status says no · `broken` it may have run ·
 * `timeout` the deadline passed · `closed` we ended the link ourselves
 */
export type UpstreamFault = 'unreachable' | 'expired' | 'unauthorized' | 'refused' | 'broken' | 'timeout' | 'closed'

/** A failure on the way to an upstream, in words for the operator. */
export class UpstreamError extends Error {
  readonly fault: UpstreamFault
  /** More, for those who manage the server (the last lines of its stderr). Not for its clients. */
  readonly detail: string
  /** The status of an HTTP answer that refuses. */
  readonly status: number | undefined

  constructor (fault: UpstreamFault, message: string, detail = '', status?: number) {
    super(message)
    this.name = 'UpstreamError'
    this.fault = fault
    this.detail = detail
    this.status = status
  }

  /** True when the request certainly did not run, so that it may be sent again. */
  get didNotRun (): boolean {
    return this.fault === 'unreachable' || this.fault === 'expired' || this.fault === 'unauthorized'
  }
}

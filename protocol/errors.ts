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

/** An error that is answered to the peer as JSON-RPC `error`. */
export class RpcError extends Error {
  readonly code: number
  /** The `error` object as an upstream wrote it, where it is one of an upstream. */
  readonly #text: string | undefined

  constructor (code: number, message: string, text?: string) {
    super(message)
    this.name = 'RpcError'
    this.code = code
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
  /** More, for who runs the server: what it printed. Not for its clients. */
  readonly detail: string
  /** Of an HTTP answer that says no. */
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

import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { RequestHeaders } from '../../protocol/exchange.ts'
import { RequestTable } from '../../protocol/table.ts'
import { ShareError } from '../base/limits/index.ts'
import { bearerKeyHeaderName, type Principal, type View } from '../settings/index.ts'

/** An HTTP request to an MCP endpoint, after the caller was identified and the body read. `raw`: the response. */
export interface InboundRequest {
  readonly view: View
  readonly headers: IncomingHttpHeaders
  readonly raw: ServerResponse
  readonly address: string
}

/** The parts of an HTTP request that the exchange for each of its MCP requests needs. */
export interface HttpRequestContext {
  readonly headers: RequestHeaders
  /** The header that carries the caller's credential, in lower case. It is not forwarded. */
  readonly credentialHeader: string | undefined
  readonly address: string
}

/** An HTTP endpoint for MCP clients of one era and transport. */
export interface Endpoint {
  /** Refuses new requests, waits up to `timeout` ms for open ones, fails the rest, and ends all streams. */
  close: (timeout: number) => Promise<void>
  /** Ends sessions that have lost access. @param hasAccess whether the principal of a view still has this view */
  revoke: (hasAccess: (view: View) => boolean) => void
  /**
   * Ends the streams and subscriptions that were opened with a credential, once it has expired. Sessions are kept:
   * clients renew the credential with their next request, and few clients can start a new session.
   * @param id the id in `Principal.credential`
   */
  expire: (id: string) => void
}

/** The open requests at an endpoint. When the gateway shuts down, `drain` waits for them. */
export class InFlightTable<Entry> {
  readonly #entries = new RequestTable<number, Entry>()
  #last = 0
  #emptied: (() => void) | undefined
  #draining: Promise<void> | undefined

  /** Whether `drain` was called; the endpoint then refuses new requests. */
  get isClosing (): boolean { return this.#draining !== undefined }

  /** Adds an open request. @returns the number with which to `remove` it */
  add (entry: Entry): number {
    this.#entries.set(++this.#last, entry)
    return this.#last
  }

  remove (number: number): void {
    this.#entries.take(number)
    if (this.#entries.size === 0) this.#emptied?.()
  }

  /** Returns a copy of the entries, in the order in which they were added. */
  values (): Entry[] { return this.#entries.values() }

  /** Sets `isClosing`, and waits up to `timeout` ms for the open requests. Further calls wait until the same time. */
  async drain (timeout: number): Promise<void> {
    await (this.#draining ??= new Promise<void>((resolve) => {
      this.#emptied = resolve
      if (this.#entries.size === 0) resolve()
      else setTimeout(resolve, timeout).unref()
    }))
  }
}

/** Creates the error for a request that is still running when the gateway shuts down. */
export const shuttingDownError = (): RpcError =>
  new RpcError(rpcCode.unavailable, 'The gateway is shutting down; the request may have run', 'no-answer')

export type LogError = (error: unknown, sentence: string) => void

/** Converts an error to the JSON-RPC error for the client. An unexpected one is logged, and its message is not sent. */
export function toRpcErrorAndLog (error: unknown, logError: LogError): RpcError {
  if (error instanceof RpcError) return error
  if (error instanceof ShareError) {
    return new RpcError(rpcCode.unavailable, error.message, error.isOwnerLimit ? 'share' : 'limit')
  }
  logError(error, 'a request failed unexpectedly')
  return new RpcError(rpcCode.internal, 'Internal error', 'internal')
}

/** Returns the first value of a header that may be repeated. */
export const firstHeaderValue = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value

/**
 * Returns the name of the header that carries the caller's credential, in lower case: for keys, the configured header;
 * for other credentials, `authorization`; undefined if the caller has no credential.
 */
export function credentialHeaderName ({ kind }: Principal, snapshot: Snapshot): string | undefined {
  if (kind === 'anonymous') return undefined
  return kind === 'system-key' || kind === 'user-key' ? bearerKeyHeaderName(snapshot) : 'authorization'
}

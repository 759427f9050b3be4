import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Snapshot } from '../../db/store.ts'
import { headerOf, type Principal, type View } from '../settings/index.ts'

/** One HTTP request at an MCP endpoint, admitted by the `mcp` scope and with its body read. */
export interface Inbound {
  readonly view: View
  readonly headers: IncomingHttpHeaders
  readonly raw: ServerResponse
  /** The address of the client. */
  readonly address: string
}

/** An HTTP endpoint for MCP clients: of an era, or of one of its transports. */
export interface Endpoint {
  /** Refuses new requests, waits for those in flight (`timeout` in ms), fails the rest, and ends all streams. */
  close: (timeout: number) => Promise<void>
  /** Ends sessions whose access was withdrawn. @param stands whether a session's principal still gets its view */
  revoke: (stands: (view: View) => boolean) => void
}

/** The first value of a header. */
export const single = (value: string | string[] | undefined): string | undefined => Array.isArray(value) ? value[0] : value

/** The header that authenticated the caller, in lower case: configurable for bearer keys, `authorization` for other tokens. */
export function credentialHeader ({ kind }: Principal, snapshot: Snapshot): string | undefined {
  if (kind === 'anonymous') return undefined
  return kind === 'system-key' || kind === 'user-key' ? headerOf(snapshot) : 'authorization'
}

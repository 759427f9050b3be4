import type { UsedStates } from '../../db/ports.ts'
import type { Snapshot } from '../../db/store.ts'
import type { View } from '../settings/index.ts'
import type { Gateway } from '../gateway/index.ts'
import type { Endpoint } from './endpoint.ts'
import { LegacyEndpoint } from './legacy/endpoint.ts'
import { LegacyRequests } from './legacy/requests.ts'
import { Sessions } from './legacy/sessions.ts'
import { ModernEndpoint } from './modern/endpoint.ts'
import type { Sealer } from './modern/state.ts'
import { StreamableHttp } from './streamable-http.ts'

/** Access to the gateway by MCP: the endpoints of its eras and transports. Only these write MCP messages to sockets. */
export class Downstream {
  readonly sessions = new Sessions()
  /** Runs the messages of all legacy sessions. */
  readonly requests: LegacyRequests
  readonly modern: ModernEndpoint
  readonly streamableHttp: StreamableHttp
  readonly #endpoints: Endpoint[]

  /**
   * @param sealer seals what modern clients keep for servers, so that every replica can open it; undefined: only this process can
   * @param isOurs whether the value of a header holds a credential of this gateway's
   */
  constructor (
    gateway: Gateway,
    snapshot: () => Snapshot,
    logError: (error: unknown, sentence: string) => void,
    sealer: Sealer | undefined,
    usedStates: UsedStates,
    isOurs?: (value: string) => boolean
  ) {
    this.requests = new LegacyRequests(gateway, snapshot, logError)
    const legacy = new LegacyEndpoint(gateway, this.sessions, this.requests, snapshot)
    this.modern = new ModernEndpoint({ gateway, snapshot, logError, sealer, usedStates, isOurs })
    this.streamableHttp = new StreamableHttp(legacy, this.modern)
    this.#endpoints = [legacy, this.modern]
    this.sessions.on('ended', (session) => {
      gateway.forget(session).catch((error: unknown) => { logError(error, 'the links of a session could not be released') })
    })
  }

  /** Adds an endpoint. */
  add (endpoint: Endpoint): void { this.#endpoints.push(endpoint) }

  /** Refuses new requests, waits for those in flight (`timeout` in ms), fails the rest, and ends all streams. */
  async close (timeout: number): Promise<void> {
    await Promise.all(this.#endpoints.map(async (endpoint) => { await endpoint.close(timeout) }))
  }

  /** Ends sessions whose access was withdrawn. @param stands whether a session's principal still gets its view */
  revoke (stands: (view: View) => boolean): void {
    for (const endpoint of this.#endpoints) endpoint.revoke(stands)
  }

  /**
   * Ends the streams and subscriptions that a credential has opened which has expired. Sessions stay: their clients renew the credential as
   * they come back for a stream, or with their next request, and few would begin a session anew.
   * @param id as in `Principal.credential`
   */
  closeChannels (id: string): void {
    for (const session of this.sessions) if (session.view.principal.credential?.id === id) session.closeChannels()
    this.modern.subscriptions.expire(id)
  }
}

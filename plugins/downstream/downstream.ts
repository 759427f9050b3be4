import type { Snapshot } from '../../db/store.ts'
import type { View } from '../access/view.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Endpoint } from './endpoint.ts'
import { LegacyEndpoint } from './legacy/endpoint.ts'
import { LegacyRequests } from './legacy/requests.ts'
import { Sessions } from './legacy/sessions.ts'

/** MCP as a way of asking the gateway: the endpoints of its eras and transports. The only place that writes MCP to a socket. */
export class Downstream {
  readonly sessions = new Sessions()
  /** Runs the messages of all legacy sessions. */
  readonly requests: LegacyRequests
  readonly streamableHttp: LegacyEndpoint
  readonly #endpoints: Endpoint[]

  constructor (gateway: Gateway, snapshot: () => Snapshot, logError: (error: unknown, sentence: string) => void) {
    this.requests = new LegacyRequests(gateway, snapshot, logError)
    this.streamableHttp = new LegacyEndpoint(gateway, this.sessions, this.requests, snapshot)
    this.#endpoints = [this.streamableHttp]
    this.sessions.on('ended', (session) => {
      gateway.forget(session).catch((error: unknown) => { logError(error, 'the links of a session could not be released') })
    })
  }

  /** Adds a way in. */
  add (endpoint: Endpoint): void { this.#endpoints.push(endpoint) }

  /** Takes nothing new, waits for what is in flight (`timeout` in ms), fails the rest, and ends all streams. */
  async close (timeout: number): Promise<void> {
    await Promise.all(this.#endpoints.map(async (endpoint) => { await endpoint.close(timeout) }))
  }

  /** Ends the sessions whose access was withdrawn. @param stands whether a session's view is still given to its principal */
  revoke (stands: (view: View) => boolean): void {
    for (const endpoint of this.#endpoints) endpoint.revoke(stands)
  }
}

import fp from 'fastify-plugin'
import type { UsedRequestStates } from '../../db/ports/login-states.ts'
import type { Snapshot } from '../../db/store.ts'
import { type View, canUseMcp } from '../settings/index.ts'
import type { Sealer } from '../base/secrets/index.ts'
import type { Gateway } from '../gateway/index.ts'
import type { Endpoint, LogError } from './endpoint.ts'
import { LegacyEndpoint } from './legacy/endpoint.ts'
import { LegacyMessageHandler } from './legacy/message-handler.ts'
import { Sessions } from './legacy/sessions.ts'
import { ModernEndpoint } from './modern/endpoint.ts'
import { StreamableHttp } from './streamable-http.ts'

/** The MCP endpoints for all protocol eras and transports. No other code writes MCP messages to clients. */
class Downstream {
  readonly sessions = new Sessions()
  /** Handles the messages of all legacy sessions. */
  readonly requests: LegacyMessageHandler
  readonly modern: ModernEndpoint
  readonly streamableHttp: StreamableHttp
  readonly #endpoints: Endpoint[]

  /**
   * @param sealer seals `requestState` for all replicas; undefined if only this process needs to open it
   * @param isOwnCredential whether a header value contains a credential for this gateway, and must not be forwarded
   */
  constructor (
    gateway: Gateway,
    snapshot: () => Snapshot,
    logError: LogError,
    sealer: Sealer | undefined,
    usedStates: UsedRequestStates,
    isOwnCredential: (value: string) => boolean
  ) {
    this.requests = new LegacyMessageHandler(gateway, snapshot, logError)
    const legacy = new LegacyEndpoint(gateway, this.sessions, this.requests, snapshot)
    this.modern = new ModernEndpoint({ gateway, snapshot, logError, sealer, usedStates, isOwnCredential })
    this.streamableHttp = new StreamableHttp(legacy, this.modern)
    this.#endpoints = [legacy, this.modern]
    this.sessions.on('ended', (session) => {
      gateway.removeClient(session).catch((error: unknown) => {
        logError(error, 'the links of a session could not be released')
      })
    })
  }

  add (endpoint: Endpoint): void { this.#endpoints.push(endpoint) }

  /** Refuses new requests, waits up to `timeout` ms for open ones, fails the rest, and ends all streams. */
  async close (timeout: number): Promise<void> {
    await Promise.all(this.#endpoints.map(async (endpoint) => { await endpoint.close(timeout) }))
  }

  /** Ends sessions that have lost access. @param hasAccess whether the principal of a view still has this view */
  revoke (hasAccess: (view: View) => boolean): void {
    for (const endpoint of this.#endpoints) endpoint.revoke(hasAccess)
  }

  /** Ends the streams of an expired credential. @param id the id in `Principal.credential` */
  expire (id: string): void { for (const endpoint of this.#endpoints) endpoint.expire(id) }
}

declare module 'fastify' {
  interface FastifyInstance { downstream: Downstream }
}

/** Decorates the app with `downstream`, the MCP endpoints, which `app.ts` closes. */
export default fp<{ sealer?: Sealer, usedStates: UsedRequestStates }>(async (app, { sealer, usedStates }) => {
  const logError: LogError = (error, sentence) => { app.log.error({ err: error }, sentence) }
  const isOwnCredential = (value: string): boolean => app.credentials.hasMatchIn(value)
  const downstream =
    new Downstream(app.gateway, () => app.settings.current, logError, sealer, usedStates, isOwnCredential)
  app.decorate('downstream', downstream)
  // A session without access ends; the others lose the servers that they may no longer use.
  app.auth.accessChanges.on('changed', (standingOf) => {
    const hasAccess = (view: View): boolean => {
      const principal = standingOf(view.principal)
      return principal !== undefined && canUseMcp(principal) && app.access.isViewCurrent(view, principal)
    }
    // Clients of event streams must be notified of the reason before their requests end.
    app.gateway.endStreams(hasAccess)
    downstream.revoke(hasAccess)
    app.gateway.applyAccess()
  })
  app.auth.accessChanges.on('expired', (id) => { downstream.expire(id) })
}, { name: 'downstream', dependencies: ['base', 'gateway', 'auth', 'access', 'settings'] })

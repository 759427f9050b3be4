import type { Call, CallOptions } from './call.ts'
import { refuseEchoedRequest } from './instance.ts'
import { RpcError, UpstreamError } from './errors.ts'
import type { Era } from './era.ts'
import type { Exchange } from './exchange.ts'
import { LegacyUpstreamSession } from './legacy/upstream-session.ts'
import type { LogLevel } from './listener.ts'
import type { Response } from './message.ts'
import { discoverServer, NotModernError, type DiscoveredServer } from './modern/discover.ts'
import { latestModernVersion } from './modern/envelope.ts'
import { ModernUpstreamSession, type ModernSessionOptions } from './modern/upstream-session.ts'
import { RpcConnection, openRpcConnection } from './peer.ts'
import type { Transport } from './transports/transport.ts'
import type { ClientIdentity, ServerIdentity, SessionHandlers, UpstreamSession } from './upstream-session.ts'
import { waitAtMost } from './wait-at-most.ts'

/** Max wait for a process's answer to `server/discover`, in ms. Some processes do not answer unknown requests. */
const probeTime = 1_000
/** Max wait for an HTTP server's answer to `server/discover`, in ms. HTTP servers do answer unknown requests. */
const httpProbeTime = 5_000
/** Max wait for the answer to `initialize` after `server/discover` was answered, in ms. */
const initializeGrace = 2_000

/** What is known about a server's era before the gateway connects. */
export interface EraKnowledge {
  /** The server's era, as known from earlier connections; undefined: not known. */
  readonly era: Era | undefined
  /**
   * Called when the era has been detected.
   * @param ignoresDiscover whether the server does not answer `server/discover`, or refuses `initialize` after it
   */
  readonly onEra: (era: Era, ignoresDiscover: boolean) => void
}

/** Thrown if a connection is unusable because it was opened in the wrong era: open another one in `era`. */
export class WrongEraError extends UpstreamError {
  readonly era: Era

  constructor (era: Era, message: string, options: { readonly detail?: string } = {}) {
    super('broken', message, { ...options, isPublic: true })
    this.era = era
  }
}

const unknownIdentity: ServerIdentity = { version: '', capabilities: {}, serverInfo: '{}', instructions: undefined }

type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }
const toOutcome = async <Value> (promise: Promise<Value>): Promise<Outcome<Value>> =>
  await promise.then((value) => ({ value }), (error: unknown) => ({ error }))

/**
 * A connection that detects the server's era when it opens (MCP 2026-07-28, "Versioning and Compatibility"): it sends
 * `server/discover`, and then `initialize` if the server does not know that method. A server that is known to be legacy
 * gets `initialize` first. A session of the detected era does the rest.
 *
 * Some processes do not answer unknown requests. If a process has not answered after a second, `initialize` is sent as
 * well, and the first answer decides. So the probe does not delay a process that starts slowly, and delays a silent one
 * by at most a second.
 */
export class DualEraSession implements UpstreamSession {
  readonly #transport: Transport
  readonly #client: ClientIdentity
  readonly #handlers: SessionHandlers
  readonly #options: ModernSessionOptions
  readonly #eraKnowledge: EraKnowledge
  readonly #connection: RpcConnection
  #session: LegacyUpstreamSession | ModernUpstreamSession | undefined
  #closed = false

  constructor (
    transport: Transport,
    client: ClientIdentity,
    handlers: SessionHandlers,
    eraKnowledge: EraKnowledge,
    options: ModernSessionOptions
  ) {
    this.#transport = transport
    this.#client = client
    this.#handlers = handlers
    this.#eraKnowledge = eraKnowledge
    this.#options = options
    this.#connection = new RpcConnection(transport, {
      request: (request) => { refuseEchoedRequest(this.#connection, request) },
      notification: () => {},
      mended: handlers.mended,
      closed: () => { this.#closed = true }
    })
  }

  get identity (): ServerIdentity { return this.#session?.identity ?? unknownIdentity }
  get openCalls (): readonly Call[] { return this.#session?.openCalls ?? [] }
  get busy (): boolean { return this.#session?.busy === true }
  get closed (): boolean { return this.#session?.closed ?? this.#closed }

  async open (onDialled: () => void): Promise<void> {
    try {
      await openRpcConnection(this.#connection, onDialled, this.#client.initTimeout)
      if (this.#eraKnowledge.era === 'legacy') await this.#beginLegacy()
      else await this.#beginModern()
    } catch (error) {
      const lastLines = this.#transport.lastLines ?? ''
      await this.close()
      // A process that waits for something, such as a login, may have printed a message about it.
      throw error instanceof UpstreamError && error.fault === 'timeout' ? error.withDetail(lastLines) : error
    }
  }

  call (exchange: Exchange, options: Omit<CallOptions, 'onEnd'>): Promise<Response> {
    return this.#opened.call(exchange, options)
  }

  async request (method: string, paramsText?: string, timeout?: number): Promise<string> {
    return await this.#opened.request(method, paramsText, timeout)
  }

  notify (method: string, paramsText?: string): void { this.#session?.notify(method, paramsText) }
  async subscribe (uri: string, paramsText?: string): Promise<string> {
    return await this.#opened.subscribe(uri, paramsText)
  }

  async unsubscribe (uri: string, paramsText?: string): Promise<string> {
    return await this.#opened.unsubscribe(uri, paramsText)
  }

  async setLevel (level: LogLevel, paramsText?: string): Promise<void> {
    await this.#opened.setLevel(level, paramsText)
  }

  async ping (timeout: number): Promise<void> { await this.#opened.ping(timeout) }

  async close (): Promise<void> {
    this.#closed = true
    if (this.#session) {
      await this.#session.close()
      return
    }
    this.#connection.closed(new UpstreamError('broken', 'its connection was closed', { isPublic: true }))
    await this.#transport.close()
  }

  get #opened (): LegacyUpstreamSession | ModernUpstreamSession {
    if (!this.#session) throw new UpstreamError('unreachable', 'the connection is not open', { isPublic: true })
    return this.#session
  }

  /** Connects to a legacy server. If it refuses `initialize`, tries `server/discover`: it may have become modern. */
  async #beginLegacy (): Promise<void> {
    const session = new LegacyUpstreamSession(this.#transport, this.#client, this.#handlers, this.#connection)
    const outcome = await toOutcome(session.handshake())
    if (!('error' in outcome)) {
      this.#useLegacy(session, false)
      return
    }
    if (!isRefusal(outcome.error) || session.closed) throw outcome.error
    const discovered = await toOutcome(this.#discover())
    if ('error' in discovered) throw outcome.error
    await this.#useModern(discovered.value)
  }

  async #beginModern (): Promise<void> {
    const isProcess = this.#transport.hasStreams !== true
    const discovering = toOutcome(this.#discover())
    const isKnown = this.#eraKnowledge.era === 'modern'
    const outcome = isKnown ? await discovering : await waitAtMost(isProcess ? probeTime : httpProbeTime, discovering)
    if (outcome !== undefined) await this.#decide(outcome, isProcess)
    else if (isProcess) await this.#askBoth(discovering)
    else await this.#beginLegacy()
  }

  /** Continues after `server/discover` was answered, or has failed. */
  async #decide (outcome: Outcome<DiscoveredServer>, isProcess: boolean): Promise<void> {
    if (!('error' in outcome)) {
      await this.#useModern(outcome.value)
      return
    }
    const { error } = outcome
    if (!(error instanceof NotModernError)) throw error
    // Some processes exit if another request precedes `initialize`.
    if (isProcess && this.#closed) throw new WrongEraError('legacy', error.message)
    const session = new LegacyUpstreamSession(this.#transport, this.#client, this.#handlers, this.#connection)
    const begun = await toOutcome(session.handshake())
    if ('error' in begun) {
      // The next attempt begins with `initialize`: the server may accept no other request before it.
      if (isRefusal(begun.error)) this.#eraKnowledge.onEra('legacy', true)
      throw begun.error
    }
    this.#useLegacy(session, false)
  }

  /**
   * Sends `initialize` as well, since the process may never answer `server/discover`. The process reads messages in
   * order, so the order of its answers reveals its era.
   */
  async #askBoth (discovering: Promise<Outcome<DiscoveredServer>>): Promise<void> {
    const session = new LegacyUpstreamSession(this.#transport, this.#client, this.#handlers, this.#connection)
    const beginning = toOutcome(session.handshake())
    const first = await Promise.race([discovering, beginning.then((outcome) => ({ beginning: outcome }))])
    if ('beginning' in first && !('error' in first.beginning)) {
      this.#useLegacy(session, true)
      return
    }
    const discovered = 'beginning' in first ? await discovering : first
    if ('error' in discovered) {
      const begun = await beginning
      if (!('error' in begun)) this.#useLegacy(session, false)
      else if (discovered.error instanceof NotModernError && session.closed) {
        throw new WrongEraError('legacy', discovered.error.message)
      } else throw begun.error
      return
    }
    const begun = await waitAtMost(initializeGrace, beginning)
    // The server supports both eras, and uses the legacy one on this connection now.
    if (begun && !('error' in begun)) {
      throw new WrongEraError('modern', 'the server started a session in an earlier revision than it supports')
    }
    await this.#useModern(discovered.value)
  }

  async #discover (): Promise<DiscoveredServer> {
    return await discoverServer(this.#connection, this.#client, this.#options.tools, latestModernVersion)
  }

  #useLegacy (session: LegacyUpstreamSession, ignoresDiscover: boolean): void {
    this.#session = session
    this.#eraKnowledge.onEra('legacy', ignoresDiscover)
  }

  async #useModern (discovered: DiscoveredServer): Promise<void> {
    const session = new ModernUpstreamSession(
      this.#connection, this.#transport, this.#client, this.#handlers, discovered, this.#options
    )
    this.#session = session
    this.#eraKnowledge.onEra('modern', false)
    await session.open()
  }
}

/** Whether this error may be a modern server's answer to `initialize`. */
const isRefusal = (error: unknown): boolean =>
  error instanceof RpcError ||
  (error instanceof UpstreamError &&
    (error.fault === 'refused' || error.fault === 'expired' || error.fault === 'broken'))

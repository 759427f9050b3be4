import type { Call, CallOptions } from './call.ts'
import { refuseEcho } from './instance.ts'
import { RpcError, UpstreamError } from './errors.ts'
import type { Era } from './era.ts'
import type { Exchange } from './exchange.ts'
import { LegacyUpstreamSession } from './legacy/upstream-session.ts'
import type { Level } from './listener.ts'
import type { Response } from './message.ts'
import { discoverServer, NotModern, type DiscoveredServer } from './modern/discover.ts'
import { latestModern } from './modern/envelope.ts'
import { ModernUpstreamSession, type ModernSessionOptions } from './modern/upstream-session.ts'
import { Peer, startPeer } from './peer.ts'
import type { Transport } from './transports/transport.ts'
import type { ClientIdentity, ServerIdentity, SessionHandlers, UpstreamSession } from './upstream-session.ts'

/** How long the answer to `server/discover` is waited for, in ms: a process may not answer what it does not know. */
const probeTime = 1_000
/** The same for an HTTP server, which answers what it does not know. */
const httpProbeTime = 5_000
/** How long the outcome of an `initialize` is waited for that turned out to be unnecessary, in ms. */
const regretTime = 2_000

/** The facts that are known of a server before the gateway connects to it. */
export interface Beginning {
  /** The era to begin in; undefined: it is to be found out. */
  readonly era: Era | undefined
  /** Called once the era is known. @param isShy the server does not answer the question, or dies of it */
  readonly found: (era: Era, isShy: boolean) => void
}

/** The connection cannot be used any more, since it began in the wrong era: another one is to begin in this one. */
export class WrongBeginning extends UpstreamError {
  readonly era: Era

  constructor (era: Era, message: string, options: { readonly detail?: string } = {}) {
    super('broken', message, { ...options, isPublic: true })
    this.era = era
  }
}

const unknown: ServerIdentity = { version: '', capabilities: {}, serverInfo: '{}', instructions: undefined }

type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }
const settled = async <Value> (promise: Promise<Value>): Promise<Outcome<Value>> =>
  await promise.then((value) => ({ value }), (error: unknown) => ({ error }))

async function within<Value> (ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => { timer = setTimeout(() => { resolve(undefined) }, ms) })
  return await Promise.race([promise, late]).finally(() => { clearTimeout(timer) })
}

/**
 * A connection to a server whose era is found out when it opens (MCP 2026-07-28, "Versioning and Compatibility"): the
 * server is asked by `server/discover`, and with `initialize` where it does not know that. Everything else is done by
 * the session of that era.
 *
 * A process may not answer a request that it does not know. So if there is no answer after a second, `initialize` is
 * sent as well, and what is answered first counts: a process that starts slowly loses nothing by that, and one that
 * stays silent a second at most.
 */
export class DualEraSession implements UpstreamSession {
  readonly #transport: Transport
  readonly #client: ClientIdentity
  readonly #handlers: SessionHandlers
  readonly #options: ModernSessionOptions
  readonly #beginning: Beginning
  readonly #peer: Peer
  #session: LegacyUpstreamSession | ModernUpstreamSession | undefined
  #closed = false

  constructor (
    transport: Transport,
    client: ClientIdentity,
    handlers: SessionHandlers,
    beginning: Beginning,
    options: ModernSessionOptions
  ) {
    this.#transport = transport
    this.#client = client
    this.#handlers = handlers
    this.#beginning = beginning
    this.#options = options
    this.#peer = new Peer(transport, {
      request: (request) => { refuseEcho(this.#peer, request) },
      notification: () => {},
      mended: handlers.mended,
      closed: () => { this.#closed = true }
    })
  }

  get identity (): ServerIdentity { return this.#session?.identity ?? unknown }
  get openCalls (): readonly Call[] { return this.#session?.openCalls ?? [] }
  get busy (): boolean { return this.#session?.busy === true }
  get closed (): boolean { return this.#session?.closed ?? this.#closed }

  async open (dialled: () => void): Promise<void> {
    try {
      await startPeer(this.#peer, dialled, this.#client.initTimeout)
      if (this.#beginning.era === 'legacy') await this.#beginLegacy()
      else await this.#beginModern()
    } catch (error) {
      const words = this.#transport.lastWords ?? ''
      await this.close()
      // A process that waits for something may have printed what for.
      throw error instanceof UpstreamError && error.fault === 'timeout' ? error.withDetail(words) : error
    }
  }

  call (exchange: Exchange, options: Omit<CallOptions, 'over'>): Promise<Response> {
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

  async setLevel (level: Level): Promise<void> { await this.#opened.setLevel(level) }
  async ping (timeout: number): Promise<void> { await this.#opened.ping(timeout) }

  async close (): Promise<void> {
    this.#closed = true
    if (this.#session) {
      await this.#session.close()
      return
    }
    this.#peer.closed(new UpstreamError('broken', 'its connection was closed', { isPublic: true }))
    await this.#transport.close()
  }

  get #opened (): LegacyUpstreamSession | ModernUpstreamSession {
    if (!this.#session) throw new UpstreamError('unreachable', 'the connection is not open', { isPublic: true })
    return this.#session
  }

  /** It was a legacy server before. If it refuses to be one now, it may have become a modern one. */
  async #beginLegacy (): Promise<void> {
    const session = new LegacyUpstreamSession(this.#transport, this.#client, this.#handlers, this.#peer)
    const outcome = await settled(session.handshake())
    if (!('error' in outcome)) {
      this.#useLegacy(session, false)
      return
    }
    if (!isRefusal(outcome.error) || session.closed) throw outcome.error
    const discovered = await settled(this.#discover())
    if ('error' in discovered) throw outcome.error
    await this.#useModern(discovered.value)
  }

  async #beginModern (): Promise<void> {
    const isProcess = this.#transport.hasStreams !== true
    const discovering = settled(this.#discover())
    const isKnown = this.#beginning.era === 'modern'
    const outcome = isKnown ? await discovering : await within(isProcess ? probeTime : httpProbeTime, discovering)
    if (outcome !== undefined) await this.#decide(outcome, isProcess)
    else if (isProcess) await this.#askBoth(discovering)
    else await this.#beginLegacy()
  }

  async #decide (outcome: Outcome<DiscoveredServer>, isProcess: boolean): Promise<void> {
    if (!('error' in outcome)) {
      await this.#useModern(outcome.value)
      return
    }
    const { error } = outcome
    if (!(error instanceof NotModern)) throw error
    // Some end at a request before `initialize`.
    if (isProcess && this.#closed) throw new WrongBeginning('legacy', error.message)
    const session = new LegacyUpstreamSession(this.#transport, this.#client, this.#handlers, this.#peer)
    await session.handshake()
    this.#useLegacy(session, false)
  }

  /**
   * A process has not answered yet, and may never. It reads one message after the other, so its answers tell what it
   * is.
   */
  async #askBoth (discovering: Promise<Outcome<DiscoveredServer>>): Promise<void> {
    const session = new LegacyUpstreamSession(this.#transport, this.#client, this.#handlers, this.#peer)
    const beginning = settled(session.handshake())
    const first = await Promise.race([discovering, beginning.then((outcome) => ({ beginning: outcome }))])
    if ('beginning' in first && !('error' in first.beginning)) {
      this.#useLegacy(session, true)
      return
    }
    const discovered = 'beginning' in first ? await discovering : first
    if ('error' in discovered) {
      const begun = await beginning
      if (!('error' in begun)) this.#useLegacy(session, false)
      else if (discovered.error instanceof NotModern && session.closed) {
        throw new WrongBeginning(
          'legacy', discovered.error.message
        )
      } else throw begun.error
      return
    }
    const begun = await within(regretTime, beginning)
    // It speaks both eras, and has taken the one that it was offered last.
    if (begun && !('error' in begun)) {
      throw new WrongBeginning('modern', 'the server has begun in an earlier revision than it can speak')
    }
    await this.#useModern(discovered.value)
  }

  async #discover (): Promise<DiscoveredServer> {
    const id = this.#peer.nextId
    const { initTimeout } = this.#client
    const timer = setTimeout(() => {
      const message = `no answer to server/discover within ${initTimeout / 1_000} s`
      this.#peer.abandon(id, new UpstreamError('timeout', message, { isPublic: true }))
    }, initTimeout)
    try {
      return await discoverServer(this.#peer, this.#client, this.#options.tools, latestModern)
    } finally {
      clearTimeout(timer)
    }
  }

  #useLegacy (session: LegacyUpstreamSession, isShy: boolean): void {
    this.#session = session
    this.#beginning.found('legacy', isShy)
  }

  async #useModern (discovered: DiscoveredServer): Promise<void> {
    const session =
      new ModernUpstreamSession(this.#peer, this.#transport, this.#client, this.#handlers, discovered, this.#options)
    this.#session = session
    this.#beginning.found('modern', false)
    await session.open()
  }
}

/** An answer to `initialize` that a server of another era may give. */
const isRefusal = (error: unknown): boolean =>
  error instanceof RpcError ||
  (error instanceof UpstreamError &&
    (error.fault === 'refused' || error.fault === 'expired' || error.fault === 'broken'))

import { type EraKnowledge, DualEraSession, WrongEraError } from '../../../protocol/dual-era-session.ts'
import type { Era } from '../../../protocol/era.ts'
import { RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { LegacyUpstreamSession } from '../../../protocol/legacy/upstream-session.ts'
import type { ToolParamHeaders } from '../../../protocol/modern/param-headers.ts'
import type { AuthorizationSource } from '../../../protocol/transports/authorization.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { transports, type TransportType } from '../../../schemas/transports.ts'
import { type Semaphore } from '../../base/limits/index.ts'
import { outboundAccessOf } from '../../base/outbound/index.ts'
import { Link, type LinkHandlers, type SessionFactory } from './link.ts'
import type { Slot } from './slot.ts'
import { makeTransport, type TransportDeps } from './transport.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** Settings for the connections to all servers. `Transport`: the type of the dependencies of their transports. */
export interface ConnectionSettings<Transport = TransportDeps> {
  readonly clientInfo: { readonly name: string, readonly version: string }
  readonly transport: Transport
  /** Limits how many processes are spawned and sockets connected at the same time. */
  readonly dialling: Semaphore
  /** Max time for a connection to be initialized, in ms. */
  readonly initTimeout: number
  /** Default timeout of a request, in ms. */
  readonly requestTimeout: number
}

export interface ConnectDeps {
  connecting: ConnectionSettings
  warn: (sentence: string) => void
  /**
   * Called if the connection is not open after `gatewayLimits.connectionWait`.
   * @param lastLines the last lines that the server's process printed, or an empty text
   */
  onSlow: (lastLines: string) => void
  /** Returns the source of the `Authorization` header for a slot's link; undefined if the link needs no login. */
  authorization: (slot: Slot) => AuthorizationSource | undefined
  /** What is known about the server's era (whether it uses MCP 2026-07-28, or an earlier revision). */
  eras: EraMemory
  /** The arguments that the server's tools expect in headers as well (`Mcp-Param-*`). */
  tools: ToolParamHeaders
  /** Whether the slot is the gateway's own: its link finds out the era, and other links use the result. */
  isBase: boolean
}

/**
 * Opens a link for a slot, with the first transport that works.
 * @param config the config, with its variables expanded
 * @param passesHeaders whether headers of clients are passed on to this server
 * @param kinds the transports to try, in order
 * @throws UpstreamError, RpcError: the error of the first transport
 */
export async function openLink (
  slot: Slot,
  config: ServerConfig,
  passesHeaders: boolean,
  kinds: readonly TransportType[],
  deps: ConnectDeps,
  handlers: LinkHandlers
): Promise<{ link: Link, kind: TransportType }> {
  let failure: unknown
  for (const kind of kinds) {
    try {
      return { link: await openOnce(slot, config, passesHeaders, kind, deps, handlers), kind }
    } catch (error) {
      failure ??= error
      // The next transport is tried only if the server answered, but refused this one.
      if (!(error instanceof UpstreamError && error.fault === 'refused') && !(error instanceof RpcError)) break
    }
  }
  throw kinds.length === 1 ? withTypeHint(failure) : failure
}

/** Adds a hint to an HTTP error 404 or 405: the configured address may need another transport. */
function withTypeHint (error: unknown): unknown {
  if (!(error instanceof UpstreamError) || (error.status !== 404 && error.status !== 405)) return error
  const { fault, message, status, detail } = error
  return new UpstreamError(fault, `${message}: check "url" and "type"`, { status, detail })
}

/**
 * Opens a link with one transport. If the server turns out to be of another era, tries once more in that era.
 * @param era the era in which to begin; default: the remembered era (`deps.eras`)
 * @throws UpstreamError, RpcError
 */
async function openOnce (
  slot: Slot,
  config: ServerConfig,
  passesHeaders: boolean,
  kind: TransportType,
  deps: ConnectDeps,
  handlers: LinkHandlers,
  era?: Era
): Promise<Link> {
  const { connecting: { clientInfo, initTimeout, transport: transportDeps, dialling }, warn, eras, tools, isBase } =
    deps
  const { owner, trusted } = outboundAccessOf(config)
  // The semaphore is held only while the process is spawned or the socket is connected, so that a server that answers
  // slowly does not delay connections to others.
  const release = await dialling.take(owner, trusted)
  try {
    const problem = transports[kind].locatedBy === 'command' ? await transportDeps.problemOf?.(config) : undefined
    if (problem !== undefined) throw new UpstreamError('unreachable', problem)
    const passed = passesHeaders ? () => slot.passedHeaders : undefined
    const authorization = deps.authorization(slot)
    const transport = await makeTransport(kind, { config, deps: { ...transportDeps, warn }, passed, authorization })
    const makeSession: SessionFactory = transports[kind].isDualEra
      ? (...session) => new DualEraSession(
          transport, ...session, eras.eraKnowledge(isBase, era), { tools, warn, bounds: upstreamLimits.inputRounds }
        )
      : (...session) => new LegacyUpstreamSession(transport, ...session)
    const { key, capabilities } = slot
    const link = new Link(makeSession, { key, owner: slot.owner, capabilities, clientInfo, initTimeout }, handlers)
    slot.openingLink = link
    if (slot.hasEnded) throw new UpstreamError('closed', 'it is no longer needed')
    const timer = setTimeout(() => { deps.onSlow(transport.lastLines ?? '') }, gatewayLimits.connectionWait).unref()
    await link.open(release).finally(() => { clearTimeout(timer) })
    if (slot.hasEnded) {
      await link.close()
      throw new UpstreamError('closed', 'it is no longer needed')
    }
    return link
  } catch (error) {
    if (!(error instanceof WrongEraError) || era !== undefined || slot.hasEnded) {
      eras.forget()
      throw error
    }
    era = error.era
    if (era === 'legacy') eras.markLegacy()
  } finally {
    slot.openingLink = undefined
    release()
  }
  return await openOnce(slot, config, passesHeaders, kind, deps, handlers, era)
}

/** How long a recorded era is used, in ms. */
const verdictTime = 3_600_000

interface EraVerdict { readonly era: Era, readonly ignoresDiscover: boolean, readonly at: number }

/**
 * Remembers the era of one server: whether it uses MCP 2026-07-28 or an earlier ("legacy") revision. The gateway's own
 * link finds out the era whenever it is opened, since the server may have been replaced; other links use the result. If
 * a server exits at `server/discover`, or does not answer it, all links use the legacy era for an hour, unless the
 * server refuses that era.
 */
export class EraMemory {
  readonly #now: () => number
  #verdict: EraVerdict | undefined

  constructor (now = Date.now) {
    this.#now = now
  }

  /**
   * Returns the known era for a new connection, and a callback that records the era that the connection finds.
   * @param isBase whether it is the gateway's own connection
   * @param era the era in which the connection must begin; undefined to use what is remembered
   */
  eraKnowledge (isBase: boolean, era?: Era): EraKnowledge {
    const known = era ?? this.#known(isBase)
    return {
      era: known,
      onEra: (found, ignoresDiscover) => {
        // The remembered legacy era was used without sending `server/discover`, so nothing new is known.
        const isOld = found === 'legacy' && known === 'legacy' && this.#verdict?.ignoresDiscover === true
        if (!isOld) this.#verdict = { era: found, ignoresDiscover, at: this.#now() }
      }
    }
  }

  /** Records that the server does not handle `server/discover`, so that the legacy era is used. */
  markLegacy (): void { this.#verdict = { era: 'legacy', ignoresDiscover: true, at: this.#now() } }

  /**
   * Forgets the era after a failed connection, unless the server is known not to handle `server/discover`.
   */
  forget (): void {
    if (this.#verdict?.ignoresDiscover !== true) this.#verdict = undefined
  }

  #known (isBase: boolean): Era | undefined {
    const verdict = this.#verdict
    if (verdict === undefined || this.#now() - verdict.at > verdictTime) return undefined
    return isBase && !verdict.ignoresDiscover ? undefined : verdict.era
  }
}

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

/** Settings that the connections to all servers share. */
export interface ConnectionSettings<Transport = TransportDeps> {
  readonly clientInfo: { readonly name: string, readonly version: string }
  readonly transport: Transport
  /** Limits how many processes are spawned and sockets connected at the same time. */
  readonly dialling: Semaphore
  /** In ms. */
  readonly initTimeout: number
  readonly requestTimeout: number
}

export interface ConnectDeps {
  connecting: ConnectionSettings
  warn: (sentence: string) => void
  /**
   * Called when there is no connection after `gatewayLimits.connectionWait`.
   * @param lastLines the last lines of the process's output
   */
  onSlow: (lastLines: string) => void
  /** The login that a slot's link uses; undefined if it uses none. */
  authorization: (slot: Slot) => AuthorizationSource | undefined
  /** The server's era, as far as it is known. */
  eras: EraMemory
  /** The arguments that the server's tools read from headers (`Mcp-Param-*`). */
  tools: ToolParamHeaders
  /** Whether the slot is the gateway's: other links use what its link finds out. */
  isBase: boolean
}

/**
 * Opens a link for a slot, with the first transport that finds a server.
 * @param config with its variables expanded
 * @param passesHeaders whether headers of the slot's client are passed on to this server
 * @param kinds the transports to try, in order
 * @throws UpstreamError, RpcError of the first transport
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
      // Only an answer that says "not here" is a reason to try the older transport.
      if (!(error instanceof UpstreamError && error.fault === 'refused') && !(error instanceof RpcError)) break
    }
  }
  throw kinds.length === 1 ? withTypeHint(failure) : failure
}

/** Adds a hint to the error of a server whose config states the transport: its address may have another transport. */
function withTypeHint (error: unknown): unknown {
  if (!(error instanceof UpstreamError) || (error.status !== 404 && error.status !== 405)) return error
  const { fault, message, status, detail } = error
  return new UpstreamError(fault, `${message}: check "url" and "type"`, { status, detail })
}

/**
 * Opens a link with one transport.
 * @param era the era to begin in; default: the known one
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
  // The semaphore is held while spawning or connecting only: a slow server does not delay the connections of others.
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

/** How long the recorded era is valid, in ms. */
const verdictTime = 3_600_000

interface EraVerdict { readonly era: Era, readonly ignoresDiscover: boolean, readonly at: number }

/**
 * The era of one server, as its last connection found it. The gateway's link determines it again whenever it is opened,
 * since the server may have been replaced; other links use its result. A server that exits at `server/discover`, or
 * does not answer it, is not sent it again for an hour, unless it refuses the legacy era.
 */
export class EraMemory {
  readonly #now: () => number
  #verdict: EraVerdict | undefined

  constructor (now = Date.now) {
    this.#now = now
  }

  /**
   * The known era for a new connection, and a callback that records the one found.
   * @param isBase whether the connection is the gateway's own @param era the era, if the caller already knows it
   */
  eraKnowledge (isBase: boolean, era?: Era): EraKnowledge {
    const known = era ?? this.#known(isBase)
    return {
      era: known,
      onEra: (found, ignoresDiscover) => {
        // `server/discover` was not sent, so this is no new information.
        const isOld = found === 'legacy' && known === 'legacy' && this.#verdict?.ignoresDiscover === true
        if (!isOld) this.#verdict = { era: found, ignoresDiscover, at: this.#now() }
      }
    }
  }

  /** Records that the server exited at `server/discover`. */
  markLegacy (): void { this.#verdict = { era: 'legacy', ignoresDiscover: true, at: this.#now() } }

  /**
   * Records that a connection failed. This clears the era, but not the fact that the server cannot handle
   * `server/discover`.
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

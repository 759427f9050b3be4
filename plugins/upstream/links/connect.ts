import { type Beginning, DualEraSession, WrongBeginning } from '../../../protocol/dual-era-session.ts'
import type { Era } from '../../../protocol/era.ts'
import { RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { LegacyUpstreamSession } from '../../../protocol/legacy/upstream-session.ts'
import type { ToolHeaders } from '../../../protocol/modern/param-headers.ts'
import type { AuthorizationSource } from '../../../protocol/transports/authorization.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { transports, type TransportType } from '../../../schemas/transports.ts'
import { type Semaphore } from '../../base/limits/index.ts'
import { reachOf } from '../../base/outbound/index.ts'
import { Link, type LinkHandlers, type SessionFactory } from './link.ts'
import type { Slot } from './slot.ts'
import { makeTransport, type TransportDeps } from './transport.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** What the connections to all servers share. */
export interface Connecting<Transport = TransportDeps> {
  readonly clientInfo: { readonly name: string, readonly version: string }
  readonly transport: Transport
  /** Bounds how many processes are spawned and sockets dialled at once. */
  readonly dialling: Semaphore
  /** In ms. */
  readonly initTimeout: number
  readonly requestTimeout: number
}

export interface ConnectDeps {
  connecting: Connecting
  warn: (sentence: string) => void
  /**
   * Called when the connection takes longer than `gatewayLimits.connectionWait`.
   * @param lastWords as `Transport` has them
   */
  late: (lastWords: string) => void
  /** The login that a slot's link uses; undefined: none. */
  authorization: (slot: Slot) => AuthorizationSource | undefined
  /** What is known of the era of the server, and of the headers that its tools want. */
  eras: EraMemory
  tools: ToolHeaders
  /** The slot is the gateway's: what its link finds out holds for the others. */
  isBase: boolean
}

/**
 * Opens a link for a slot, by the first transport that finds a server.
 * @param config with its variables filled in
 * @param passes headers of the slot's client are passed on to this server
 * @throws UpstreamError, RpcError: what the first transport met
 */
export async function openLink (
  slot: Slot,
  config: ServerConfig,
  passes: boolean,
  kinds: readonly TransportType[],
  deps: ConnectDeps,
  handlers: LinkHandlers
): Promise<{ link: Link, kind: TransportType }> {
  let failure: unknown
  for (const kind of kinds) {
    try {
      return { link: await openOnce(slot, config, passes, kind, deps, handlers), kind }
    } catch (error) {
      failure ??= error
      // Only an answer that says "not here" is a reason to try the older transport.
      if (!(error instanceof UpstreamError && error.fault === 'refused') && !(error instanceof RpcError)) break
    }
  }
  throw failure
}

/** @param era to begin in; undefined: what is known decides @throws UpstreamError, RpcError */
async function openOnce (
  slot: Slot,
  config: ServerConfig,
  passes: boolean,
  kind: TransportType,
  deps: ConnectDeps,
  handlers: LinkHandlers,
  era?: Era
): Promise<Link> {
  const { connecting: { clientInfo, initTimeout, transport: transportDeps, dialling }, warn, eras, tools, isBase } =
    deps
  const { owner, trusted } = reachOf(config)
  // The place covers spawning or dialling only: a slow server keeps no other one from connecting.
  const leave = await dialling.take(owner, trusted)
  try {
    const problem = transports[kind].locatedBy === 'command' ? await transportDeps.problemOf?.(config) : undefined
    if (problem !== undefined) throw new UpstreamError('unreachable', problem)
    const passed = passes ? () => slot.passed : undefined
    const authorization = deps.authorization(slot)
    const transport = makeTransport(kind, { config, deps: { ...transportDeps, warn }, passed, authorization })
    const makeSession: SessionFactory = transports[kind].isDualEra
      ? (...session) => new DualEraSession(
          transport, ...session, eras.beginning(isBase, era), { tools, warn, bounds: upstreamLimits.inputRounds }
        )
      : (...session) => new LegacyUpstreamSession(transport, ...session)
    const { key, capabilities } = slot
    const link = new Link(makeSession, { key, owner: slot.owner, capabilities, clientInfo, initTimeout }, handlers)
    slot.candidate = link
    if (slot.ended) throw new UpstreamError('closed', 'it is not needed any more')
    const timer = setTimeout(() => { deps.late(transport.lastWords ?? '') }, gatewayLimits.connectionWait).unref()
    await link.open(leave).finally(() => { clearTimeout(timer) })
    if (slot.ended) {
      await link.close()
      throw new UpstreamError('closed', 'it is not needed any more')
    }
    return link
  } catch (error) {
    if (!(error instanceof WrongBeginning) || era !== undefined || slot.ended) {
      eras.forget()
      throw error
    }
    era = error.era
    if (era === 'legacy') eras.shun()
  } finally {
    slot.candidate = undefined
    leave()
  }
  return await openOnce(slot, config, passes, kind, deps, handlers, era)
}

/** How long a verdict holds, in ms. */
const verdictTime = 3_600_000

interface Verdict { readonly era: Era, readonly isShy: boolean, readonly at: number }

/**
 * The era of one server, as its last connection found it. The gateway's link asks again whenever it is opened, since
 * the server may have been replaced; other links take its verdict. A server that does not survive the question, or
 * stays silent, is not asked again for an hour, unless it refuses the legacy era.
 */
export class EraMemory {
  readonly #now: () => number
  #verdict: Verdict | undefined

  constructor (now = Date.now) {
    this.#now = now
  }

  /** @param isBase for the gateway's link @param era known otherwise */
  beginning (isBase: boolean, era?: Era): Beginning {
    const known = era ?? this.#known(isBase)
    return {
      era: known,
      found: (found, isShy) => {
        // The server was not asked, so this is no news.
        const isOld = found === 'legacy' && known === 'legacy' && this.#verdict?.isShy === true
        if (!isOld) this.#verdict = { era: found, isShy, at: this.#now() }
      }
    }
  }

  /** The server ended when it was asked. */
  shun (): void { this.#verdict = { era: 'legacy', isShy: true, at: this.#now() } }

  /** A connection failed: nothing is known, except that the server may be one that cannot be asked. */
  forget (): void {
    if (this.#verdict?.isShy !== true) this.#verdict = undefined
  }

  #known (isBase: boolean): Era | undefined {
    const verdict = this.#verdict
    if (verdict === undefined || this.#now() - verdict.at > verdictTime) return undefined
    return isBase && !verdict.isShy ? undefined : verdict.era
  }
}

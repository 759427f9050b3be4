import { RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { AuthorizationSource } from '../../../protocol/transports/authorization.ts'
import { DualEraSession, WrongBeginning } from '../../../protocol/dual-era-session.ts'
import type { Era } from '../../../protocol/era.ts'
import { LegacyUpstreamSession } from '../../../protocol/legacy/upstream-session.ts'
import type { ToolHeaders } from '../../../protocol/modern/param-headers.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { limits, type Semaphore } from '../../base/limits/index.ts'
import { reachOf } from '../../base/outbound/index.ts'
import type { EraMemory } from './era-memory.ts'
import { Link, type LinkHandlers, type SessionFactory } from './link.ts'
import type { Slot } from './slot.ts'
import { makeTransport, type TransportDeps, type TransportKind } from './transport.ts'

export interface ConnectDeps {
  clientInfo: { name: string, version: string }
  transport: TransportDeps
  /** Bounds how many processes are spawned and sockets dialled at once. */
  dialling: Semaphore
  /** In ms. */
  initTimeout: number
  warn: (sentence: string) => void
  /** Called when a connection is still waited for after `limits.connectionWait`. @param lastWords as `Transport` has them */
  late: (lastWords: string) => void
  /** The login that a slot's link uses; undefined: none. */
  authorization: (slot: Slot) => AuthorizationSource | undefined
  /** What is known of the era that the server speaks, and of the headers that its tools want. */
  eras: EraMemory
  tools: ToolHeaders
  /** The slot is the gateway's own: what is found out there holds for the others. */
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
  kinds: readonly TransportKind[],
  deps: ConnectDeps,
  handlers: LinkHandlers
): Promise<{ link: Link, kind: TransportKind }> {
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

/** @param era that it is to begin in; undefined: what is known decides @throws UpstreamError, RpcError */
async function openOnce (
  slot: Slot,
  config: ServerConfig,
  passes: boolean,
  kind: TransportKind,
  deps: ConnectDeps,
  handlers: LinkHandlers,
  era?: Era
): Promise<Link> {
  const { clientInfo, initTimeout, warn, eras, isBase } = deps
  const { owner, trusted } = reachOf(config)
  // The place covers spawning or dialling only: waiting for an answer keeps no other server from connecting.
  const leave = await deps.dialling.take(owner, trusted)
  try {
    const problem = kind === 'stdio' ? await deps.transport.problemOf?.(config) : undefined
    if (problem !== undefined) throw new UpstreamError('unreachable', problem)
    const passed = passes ? () => slot.passed : undefined
    const transport = makeTransport(kind, config, { ...deps.transport, warn, yields: slot.yields }, passed, deps.authorization(slot))
    const makeSession: SessionFactory = hasEras(kind)
      ? (...session) => new DualEraSession(transport, ...session, eras.beginning(isBase, era), { ...deps, bounds: limits.inputRounds })
      : (...session) => new LegacyUpstreamSession(transport, ...session)
    const { key, capabilities } = slot
    const link = new Link(makeSession, { key, owner: slot.owner, capabilities, clientInfo, initTimeout }, handlers)
    slot.candidate = link
    if (slot.ended) throw new UpstreamError('closed', 'it is not needed any more')
    const timer = setTimeout(() => { deps.late(transport.lastWords ?? '') }, limits.connectionWait).unref()
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

/** The transports that the modern era has. HTTP with SSE is of 2024-11-05, and what OpenAPI describes is no MCP server. */
const hasEras = (kind: TransportKind): boolean => kind === 'stdio' || kind === 'streamable-http'

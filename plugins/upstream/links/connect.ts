import { RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Authorization } from '../../../protocol/transports/authorization.ts'
import { LegacyUpstreamSession } from '../../../protocol/legacy/upstream-session.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { Semaphore } from '../../limits/semaphore.ts'
import { reachOf } from '../../outbound/outbound.ts'
import { Link, type LinkHandlers } from './link.ts'
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
  /** The login that a slot's link uses; undefined: none. */
  authorization: (slot: Slot) => Authorization | undefined
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
  const { clientInfo, initTimeout, warn } = deps
  const { owner, trusted } = reachOf(config)
  let failure: unknown
  for (const kind of kinds) {
    // The place covers spawning or dialling only: waiting for an answer keeps no other server from connecting.
    const leave = await deps.dialling.take(owner, trusted)
    try {
      const problem = kind === 'stdio' ? await deps.transport.problemOf?.(config) : undefined
      if (problem !== undefined) throw new UpstreamError('unreachable', problem)
      const passed = passes ? () => slot.passed : undefined
      const transport = makeTransport(kind, config, { ...deps.transport, warn }, passed, deps.authorization(slot))
      const link = new Link(
        (identity, sessionHandlers) => new LegacyUpstreamSession(transport, identity, sessionHandlers),
        { key: slot.key, owner: slot.owner, capabilities: slot.capabilities, clientInfo, initTimeout },
        handlers
      )
      slot.candidate = link
      if (slot.ended) throw new UpstreamError('closed', 'it is not needed any more')
      await link.open(leave)
      if (slot.ended) {
        await link.close()
        throw new UpstreamError('closed', 'it is not needed any more')
      }
      return { link, kind }
    } catch (error) {
      failure ??= error
      // Only an answer that says "not here" is a reason to try the older transport.
      if (!(error instanceof UpstreamError && error.fault === 'refused') && !(error instanceof RpcError)) break
    } finally {
      slot.candidate = undefined
      leave()
    }
  }
  throw failure
}

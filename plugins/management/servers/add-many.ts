import { orderedEntries } from '../../../db/order.ts'
import type { Change, Snapshot } from '../../../db/store.ts'
import { isObject } from '../../../protocol/json.ts'
import { type ForeignServer, readForeignDocument } from '../../../schemas/foreign-document.ts'
import { errors } from '../../base/errors/index.ts'
import type { Principal } from '../../settings/index.ts'
import { checkServerOrGroupQuota, checkServerName } from '../checks.ts'
import { isAlreadyStored, toServerChange } from './to-store.ts'

/** Max number of servers in one request. */
const maxEntries = 1_000

/** The servers of a request body, and warnings about members of the body that are not servers. */
export interface SentServers { readonly servers: readonly ForeignServer[], readonly warnings: string[] }

/** The result for one of several servers. `unchanged`: the server was already stored with this config. */
export interface AddOutcome { name: string, success: boolean, unchanged?: true, message?: string, warnings?: string[] }

/** Reads the servers of a request body: a list, or the configuration file of a client. @throws InvalidInput */
export function parseServerEntries (body: unknown): SentServers {
  const document = readForeignDocument(body, orderedEntries)
  if (document?.servers.length === 0) throw new errors.InvalidInput('The body contains no servers')
  if (document === undefined) {
    throw new errors.InvalidInput(
      '"servers": expected a list of {"name": "…", "config": {…}}, or "mcpServers": {"<name>": {…}}'
    )
  }
  const { servers, members } = document
  if (servers.length > maxEntries) {
    throw new errors.InvalidInput(`There are ${servers.length} servers; send at most ${maxEntries}`)
  }
  return {
    servers,
    warnings: members.slice(0, 20).map((name) => `${JSON.stringify(name)} contains no servers, and was not stored`)
  }
}

/**
 * Determines the changes that add several servers, without applying them. If a server cannot be stored, the others are
 * stored nevertheless. An existing server with the same config stays unchanged.
 * @returns the changes, and the outcome of each server, in the order of `servers`
 */
export function planAdditions (
  snapshot: Snapshot, principal: Principal, servers: readonly ForeignServer[], usersMayRun: boolean
): { changes: Change[], outcomes: AddOutcome[] } {
  const names = new Set<string>()
  const changes: Change[] = []
  const add = ({ name, config }: ForeignServer, at: number): AddOutcome => {
    if (name === '' || !isObject(config)) {
      throw new errors.InvalidInput(`servers.${at}: an entry is {"name": "…", "config": {…}}`)
    }
    if (names.has(name)) throw new errors.InvalidInput(`There is already a server named ${JSON.stringify(name)}`)
    const isUnchanged = isAlreadyStored(snapshot, principal, name, config, usersMayRun)
    if (!isUnchanged) {
      checkServerName(snapshot, principal, name, 'name')
      checkServerOrGroupQuota(snapshot, principal, 'server', names.size)
      changes.push(toServerChange(snapshot, principal, name, config, usersMayRun))
    }
    names.add(name)
    return { name, success: true, ...(isUnchanged && { unchanged: true }) }
  }
  const outcomes = servers.map((each, at): AddOutcome => {
    try {
      return add(each, at)
    } catch (error) {
      return { name: each.name, success: false, message: refusalMessage(error) }
    }
  })
  return { changes, outcomes }
}

/**
 * Returns the message of an error that refuses one of several servers or groups, so that the others can still be
 * stored.
 * @throws any other error
 */
export function refusalMessage (error: unknown): string {
  const isRefusal = [errors.InvalidInput, errors.Forbidden, errors.ShareUsed].some((kind) => error instanceof kind)
  if (!isRefusal || !(error instanceof Error)) throw error
  return error.message
}

/** The results for several servers, with a summary. `outcome`: set if some or all servers were not stored. */
export interface BatchResult {
  readonly data: { readonly results: AddOutcome[], readonly successCount: number, readonly failureCount: number }
  readonly message: string
  readonly warnings: string[]
  readonly outcome?: 'partial' | 'failed'
}

export function batchResultOf (results: AddOutcome[], warnings: string[]): BatchResult {
  const successCount = results.filter(({ success }) => success).length
  const data = { results, successCount, failureCount: results.length - successCount }
  if (successCount === 0) {
    return { data, message: 'None of the servers could be added', warnings: [], outcome: 'failed' }
  }
  const message = `${successCount} of ${results.length} servers were added`
  return { data, message, warnings, ...(data.failureCount > 0 && { outcome: 'partial' }) }
}

import { jsonSize } from '../../../db/json-size.ts'
import type { Server, Snapshot } from '../../../db/store.ts'
import { maxConfigEntries } from '../../../schemas/openapi-upstream.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import {
  hasUris, type ItemKind, type OverrideChange, mapToOwnNames, ownOverrideOf, type Principal, type Settings, withOverride
} from '../../settings/index.ts'
import { managedServer, visibleServer } from '../checks.ts'
import { findItem, type PresentedItem, unlistedItem } from './present.ts'

/** The address of an item. `name`: its server. `key`: its own name or URI, or its name on merged routes. */
interface ItemAddress { readonly name: string, readonly kind: ItemKind, readonly key: string }

/**
 * Finds a server that the principal may change, and an item to override: the item is listed or overridden, or no list
 * of the server is known.
 * @returns the server, and the item's own name or URI
 * @throws NoSuch, Forbidden
 */
export function findItemToOverride (
  snapshot: Snapshot, gateway: Gateway, principal: Principal, { name, kind, key }: ItemAddress
): { server: Server, own: string } {
  const server = managedServer(snapshot, principal, name)
  const catalogues = gateway.catalogues(name)
  const isKnown =
    findItem(kind, key, server, catalogues) !== undefined || ownOverrideOf(server, kind, key) !== undefined
  if (catalogues.length === 0 || isKnown) return { server, own: key }
  const listed = hasUris(kind) ? [] : catalogues.flatMap(({ lists }) => lists[kind].map((item) => item.key))
  const own = mapToOwnNames(name, snapshot.system.nameSeparator ?? '-', listed).get(key)
  if (own === undefined) throw noSuchError(kind.slice(0, -1), key)
  return { server, own }
}

/**
 * Overrides `enabled` or the description of one tool, prompt, resource or skill, even if the server does not list it
 * now.
 * @returns the item with its override; only name and override if no known list of the server has it
 * @throws NoSuch, also for an item that is in no known list of the server; Forbidden; InvalidInput for more than
 *   `maxEntries` overrides; ShareError
 */
export async function overrideItem (
  settings: Settings, gateway: Gateway, principal: Principal, item: ItemAddress, change: OverrideChange
): Promise<PresentedItem> {
  const { name, kind, key } = item
  settings.chargeLargeChange(principal, jsonSize(managedServer(settings.current, principal, name).config))
  let own = key
  await settings.change((snapshot) => {
    const { server, own: ownKey } = findItemToOverride(snapshot, gateway, principal, item)
    own = ownKey
    const value = withOverride(server, kind, own, change)
    const most = Math.max(maxConfigEntries, Object.keys(server.config[kind] ?? {}).length)
    if (Object.keys(value[kind] ?? {}).length > most) {
      const bound = `A server has at most ${maxConfigEntries} overrides of its ${kind}`
      throw new errors.InvalidInput(`${bound}: reset one first`)
    }
    return [{ entity: 'mcpServers', key: name, value }]
  }, principal)
  const server = visibleServer(settings.current, principal, name)
  return findItem(kind, own, server, gateway.catalogues(name)) ?? unlistedItem(kind, own, server)
}

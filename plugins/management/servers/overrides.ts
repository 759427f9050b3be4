import { jsonLength } from '../../../db/json-size.ts'
import type { Server, Snapshot } from '../../../db/store.ts'
import { maxConfigEntries } from '../../../schemas/openapi-upstream.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import {
  isIdentifiedByUri, type ItemKind, type OverrideChange, mapToOwnNames, individualOverrideOf, type Principal,
  type Settings, withOverride
} from '../../settings/index.ts'
import { requireManagedServer, requireVisibleServer } from '../checks.ts'
import { findPresentedItem, type PresentedItem, unlistedItem } from './present.ts'

/** An item in a path of the API. `name`: the name of its server; `key`: its own name or URI, or its prefixed name. */
interface ItemAddress { readonly name: string, readonly kind: ItemKind, readonly key: string }

/**
 * Finds the server of an item, and the item's own name or URI, also from its prefixed name. While no list of the server
 * is known, any name is accepted.
 * @returns the server, and the item's own name or URI as `ownKey`
 * @throws NoSuch for a server that the principal may not see, or an item that is neither listed nor overridden;
 *   Forbidden for a server that the principal may not change
 */
export function findItemToOverride (
  snapshot: Snapshot, gateway: Gateway, principal: Principal, { name, kind, key }: ItemAddress
): { server: Server, ownKey: string } {
  const server = requireManagedServer(snapshot, principal, name)
  const catalogues = gateway.catalogues(name)
  const isKnown =
    findPresentedItem(kind, key, server, catalogues) !== undefined ||
    individualOverrideOf(server, kind, key) !== undefined
  if (catalogues.length === 0 || isKnown) return { server, ownKey: key }
  const listed = isIdentifiedByUri(kind) ? [] : catalogues.flatMap(({ lists }) => lists[kind].map((item) => item.key))
  const ownKey = mapToOwnNames(name, snapshot.system.nameSeparator ?? '-', listed).get(key)
  if (ownKey === undefined) throw noSuchError(kind.slice(0, -1), key)
  return { server, ownKey }
}

/**
 * Stores an override of `enabled` or the description of one tool, prompt, resource or skill.
 * @returns the item with its override; only the name and the override if no known list of the server has the item
 * @throws the errors of `findItemToOverride`; InvalidInput for more than `maxConfigEntries` overrides; ShareError
 */
export async function overrideItem (
  settings: Settings, gateway: Gateway, principal: Principal, item: ItemAddress, change: OverrideChange
): Promise<PresentedItem> {
  const { name, kind, key } = item
  settings.chargeLargeChange(principal, jsonLength(requireManagedServer(settings.current, principal, name).config))
  let own = key
  await settings.change((snapshot) => {
    const { server, ownKey } = findItemToOverride(snapshot, gateway, principal, item)
    own = ownKey
    const value = withOverride(server, kind, own, change)
    // A server that already has more, from a settings file, can keep them.
    const max = Math.max(maxConfigEntries, Object.keys(server.config[kind] ?? {}).length)
    if (Object.keys(value[kind] ?? {}).length > max) {
      const bound = `A server may have at most ${maxConfigEntries} overrides of its ${kind}`
      throw new errors.InvalidInput(`${bound}: reset one first`)
    }
    return [{ entity: 'mcpServers', key: name, value }]
  }, principal)
  const server = requireVisibleServer(settings.current, principal, name)
  return findPresentedItem(kind, own, server, gateway.catalogues(name)) ?? unlistedItem(kind, own, server)
}

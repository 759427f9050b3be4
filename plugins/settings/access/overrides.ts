import type { Catalogue } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { skillFrontmatter } from '../../../protocol/skills.ts'
import { listNames } from '../../base/errors/index.ts'
import { prefixedName, acceptedPrefixesOf } from './item-names.ts'
import { allItemsKey, type ItemOverride, type ServerConfig } from '../../../schemas/server.ts'
import type { GroupMember } from '../../../schemas/settings.ts'

/** The kinds of items that an admin may override and a group may select. */
export const itemKinds = ['tools', 'prompts', 'resources', 'skills'] as const
export type ItemKind = typeof itemKinds[number]

/** Whether items of a kind are identified by URIs, which are the same on all routes, and not by names. */
export const isIdentifiedByUri = (kind: ItemKind): boolean => kind === 'resources' || kind === 'skills'

/** A change of an override; a description of null restores the upstream's description. */
export interface OverrideChange { enabled?: boolean, description?: string | null }

/** A server with overrides. `separator`: what stands between server name and item name on merged routes. */
export interface OverriddenServer { readonly name?: string, readonly config: ServerConfig, readonly separator?: string }

/**
 * Finds the override of one item; undefined if there is none. An override under the item's own name takes precedence
 * over one under its name on merged routes. An override for all tools or prompts (`*`) that disables them applies to
 * each item whose own override does not state `enabled`.
 */
export function overrideOf (server: OverriddenServer, kind: ItemKind, key: string): ItemOverride | undefined {
  const own = individualOverrideOf(server, kind, key)
  if (isIdentifiedByUri(kind) || own?.enabled !== undefined || server.config[kind]?.[allItemsKey]?.enabled !== false) {
    return own
  }
  return { ...own, enabled: false }
}

/** Finds the override of one item like `overrideOf`, but ignores the override for all items (`*`). */
export function individualOverrideOf (server: OverriddenServer, kind: ItemKind, key: string): ItemOverride | undefined {
  const section = server.config[kind]
  if (section === undefined) return undefined
  if (Object.hasOwn(section, key)) return section[key]
  if (isIdentifiedByUri(kind)) return undefined
  for (const name of mergedNames(prefixesIn(section, server), key)) {
    if (Object.hasOwn(section, name)) return section[name]
  }
  return undefined
}

const cachedPrefixes =
  new WeakMap<Record<string, ItemOverride>, { readonly server: OverriddenServer, readonly found: readonly string[] }>()

/**
 * Returns the prefixes of merged routes that a section's overrides use. The result is cached, since this function is
 * called for thousands of items.
 */
function prefixesIn (section: Record<string, ItemOverride>, server: OverriddenServer): readonly string[] {
  const { name, separator } = server
  if (name === undefined || separator === undefined) return []
  const known = cachedPrefixes.get(section)
  if (known?.server.name === name && known.server.separator === separator) return known.found
  const names = Object.keys(section)
  const found = acceptedPrefixesOf(name, separator).filter((prefix) => names.some((each) => each.startsWith(prefix)))
  cachedPrefixes.set(section, { server, found })
  return found
}

/** Yields the names of an item on merged routes: unconverted, and as listed. */
function * mergedNames (prefixes: readonly string[], key: string): Generator<string> {
  for (const prefix of prefixes) {
    yield `${prefix}${key}`
    yield prefixedName(prefix, key)
  }
}

/** Returns a sentence for each kind of item with overrides that match no item that the server lists. */
export function unmatchedOverrideWarnings (server: OverriddenServer, { lists }: Pick<Catalogue, 'lists'>): string[] {
  return itemKinds.flatMap((kind) => {
    const section = server.config[kind] ?? {}
    const names = Object.keys(section)
    // The override may be for a resource that matches a listed template.
    if (names.length === 0 || (kind === 'resources' && lists.resourceTemplates.length > 0)) return []
    const keys = new Set(lists[kind].map(({ key }) => key))
    const unlisted = names.filter((name) => name !== allItemsKey && !keys.has(name))
    const merged = new Set(
      unlisted.length === 0 ? [] : [...keys].flatMap((key) => [...mergedNames(prefixesIn(section, server), key)])
    )
    const left = unlisted.filter((name) => !merged.has(name))
    return left.length === 0 ? [] : [`The overrides of ${kind} ${listNames(left)} match none of its items`]
  })
}

export const isItemEnabled = (override: ItemOverride | undefined): boolean => override?.enabled !== false

/** Returns the members that an override sets in an item of the management API, as JSON texts by name. */
export function overrideMembers (override: ItemOverride | undefined): Record<string, string> {
  const enabled = String(isItemEnabled(override))
  if (override?.description === undefined) return { enabled }
  return { description: JSON.stringify(override.description), overridden: 'true', enabled }
}

const emptyDescription = { description: '""' }

/**
 * Returns the members that an item of the management API gets if its server does not send them, as JSON texts by name:
 * an empty description; for a skill, the name and the description in its frontmatter.
 * @param text the item as JSON text
 */
export function defaultItemMembers (kind: ItemKind, text: string): Readonly<Record<string, string>> {
  if (kind !== 'skills') return emptyDescription
  const { name = '', description = '' } = skillFrontmatter(text)
  return { name: JSON.stringify(name), description: JSON.stringify(description) }
}

/** Converts a list of names to a set, which is cached: a group may select thousands of items. */
const toSet = memoized((names: readonly string[]): ReadonlySet<string> => new Set(names))

/** Whether a group's member selects an item. */
export function selectsItem (member: GroupMember, kind: ItemKind, key: string): boolean {
  const selector = member[kind] ?? 'all'
  return selector === 'all' || toSet(selector).has(key)
}

/**
 * Returns the config with a changed override for one item, found by its own name (a resource: its URI). An override
 * without effect is removed, unless an override under the prefixed name or for all items would then apply to the item:
 * in that case an explicit `enabled: true` stays.
 */
export function withOverride (
  server: OverriddenServer, kind: ItemKind, key: string, { enabled, description }: OverrideChange
): ServerConfig {
  const { [kind]: section = {}, ...rest } = server.config
  const next: ItemOverride = { ...overrideOf(server, kind, key) }
  if (enabled === true) delete next.enabled
  else if (enabled === false) next.enabled = false
  if (description === null) delete next.description
  else if (description !== undefined) next.description = description
  const hasOther = overrideOf({ ...server, config: { [kind]: withoutOverride(section, key) } }, kind, key) !== undefined
  if (hasOther && next.enabled === undefined) next.enabled = true
  // Built from entries, not by assignment, since an item may be named `__proto__`.
  const others = Object.entries(section).filter(([name]) => name !== key)
  const entries = Object.keys(next).length === 0 ? others : [...others, [key, next] as const]
  return entries.length === 0 ? rest : { ...rest, [kind]: Object.fromEntries(entries) }
}

const withoutOverride = (section: Record<string, ItemOverride>, key: string): Record<string, ItemOverride> =>
  Object.fromEntries(Object.entries(section).filter(([name]) => name !== key))

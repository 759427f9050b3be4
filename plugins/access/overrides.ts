import type { Catalogue } from '../../protocol/lists.ts'
import type { ItemOverride, ServerConfig } from '../../schemas/server.ts'
import type { GroupMember } from '../../schemas/settings.ts'

/** The kinds of items that an admin may override and a group may select. */
export type ItemKind = 'tools' | 'prompts' | 'resources'

/** A change of an override; a description of null restores the upstream's. */
export interface OverrideChange { enabled?: boolean, description?: string | null }

/** A server's config, with the prefix that names of its overrides may have (`Server`). */
export interface Overridden { readonly config: ServerConfig, readonly prefix?: string }

/**
 * The override of one item; undefined when there is none. All reading of overrides goes through this function. One under the item's own
 * name counts before one under its name on merged routes.
 */
export function overrideOf ({ config, prefix }: Overridden, kind: ItemKind, key: string): ItemOverride | undefined {
  const section = config[kind]
  if (section === undefined) return undefined
  if (Object.hasOwn(section, key)) return section[key]
  if (prefix === undefined || kind === 'resources') return undefined
  const prefixed = `${prefix}${key}`
  return Object.hasOwn(section, prefixed) ? section[prefixed] : undefined
}

/** Whether an override under this name is for one of the items. */
const hasTarget = (key: string, keys: ReadonlySet<string>, prefix: string | undefined): boolean =>
  keys.has(key) || (prefix !== undefined && key.startsWith(prefix) && keys.has(key.slice(prefix.length)))

/** A sentence for each kind of overrides of which some are for no item that the server lists. */
export function unmatchedIn (server: Overridden, { lists }: Pick<Catalogue, 'lists'>): string[] {
  return (['tools', 'prompts', 'resources'] as const).flatMap((kind) => {
    const names = Object.keys(server.config[kind] ?? {})
    // An override may be for a resource that a template stands for.
    if (names.length === 0 || (kind === 'resources' && lists.resourceTemplates.length > 0)) return []
    const keys = new Set(lists[kind].map(({ key }) => key))
    const left = names.filter((name) => !hasTarget(name, keys, server.prefix))
    if (left.length === 0) return []
    const shown = left.slice(0, 10).map((name) => JSON.stringify(name)).join(', ')
    return [`The overrides of ${kind} ${shown}${left.length > 10 ? ` and ${left.length - 10} more` : ''} match nothing that it lists`]
  })
}

export const isEnabled = (override: ItemOverride | undefined): boolean => override?.enabled !== false

/** Members that the management API shows with an item, as JSON text. */
export function overrideMembers (override: ItemOverride | undefined): Record<string, string> {
  const enabled = String(isEnabled(override))
  if (override?.description === undefined) return { enabled }
  return { description: JSON.stringify(override.description), overridden: 'true', enabled }
}

/** Members that the management API shows where a server lists an item without them, as JSON text: no description is an empty one. */
export const itemDefaults: Readonly<Record<string, string>> = { description: '""' }

/** Selectors as sets: a group may select thousands of items. */
const selected = new WeakMap<readonly string[], ReadonlySet<string>>()

/** Whether a group's member selects an item. */
export function selects (member: GroupMember, kind: ItemKind, key: string): boolean {
  const selector = member[kind] ?? 'all'
  if (selector === 'all') return true
  let set = selected.get(selector)
  if (!set) selected.set(selector, set = new Set(selector))
  return set.has(key)
}

/**
 * A config with the override of one item changed, by the item's own name (a resource: its URI). An override without effect is removed,
 * unless it stands before one under a name with the prefix, which stays: another item may have that name.
 */
export function withOverride (server: Overridden, kind: ItemKind, key: string, { enabled, description }: OverrideChange): ServerConfig {
  const { [kind]: section = {}, ...rest } = server.config
  const next: ItemOverride = { ...overrideOf(server, kind, key) }
  if (enabled === true) delete next.enabled
  else if (enabled === false) next.enabled = false
  if (description === null) delete next.description
  else if (description !== undefined) next.description = description
  const isBefore = overrideOf({ ...server, config: { [kind]: without(section, key) } }, kind, key) !== undefined
  if (isBefore && next.enabled === undefined) next.enabled = true
  // An item may be called `__proto__`, so the object is made from entries, not by assignment.
  const others = Object.entries(section).filter(([name]) => name !== key)
  const entries = Object.keys(next).length === 0 ? others : [...others, [key, next] as const]
  return entries.length === 0 ? rest : { ...rest, [kind]: Object.fromEntries(entries) }
}

const without = (section: Record<string, ItemOverride>, key: string): Record<string, ItemOverride> =>
  Object.fromEntries(Object.entries(section).filter(([name]) => name !== key))

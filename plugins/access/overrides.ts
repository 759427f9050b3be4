import type { ItemOverride, ServerConfig } from '../../schemas/server.ts'
import type { GroupMember } from '../../schemas/settings.ts'

/** The kinds of items that an admin may override and a group may select. */
export type ItemKind = 'tools' | 'prompts' | 'resources'

/** A change of an override; a description of null restores the upstream's. */
export interface OverrideChange { enabled?: boolean, description?: string | null }

/** The override of one item; undefined when there is none. All reading of overrides goes through this function. */
export function overrideOf (config: ServerConfig, kind: ItemKind, key: string): ItemOverride | undefined {
  const section = config[kind]
  return section !== undefined && Object.hasOwn(section, key) ? section[key] : undefined
}

export const isEnabled = (override: ItemOverride | undefined): boolean => override?.enabled !== false

/** Members that the management API shows with an item, as JSON text. */
export function overrideMembers (override: ItemOverride | undefined): Record<string, string> {
  const enabled = String(isEnabled(override))
  if (override?.description === undefined) return { enabled }
  return { description: JSON.stringify(override.description), overridden: 'true', enabled }
}

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

/** A config with the override of one item changed, by the item's own name (a resource: its URI). An override without effect is removed. */
export function withOverride (config: ServerConfig, kind: ItemKind, key: string, { enabled, description }: OverrideChange): ServerConfig {
  const { [kind]: section = {}, ...rest } = config
  const next: ItemOverride = { ...overrideOf(config, kind, key) }
  if (enabled === true) delete next.enabled
  else if (enabled === false) next.enabled = false
  if (description === null) delete next.description
  else if (description !== undefined) next.description = description
  // An item may be called `__proto__`, so the object is made from entries, not by assignment.
  const others = Object.entries(section).filter(([name]) => name !== key)
  const entries = Object.keys(next).length === 0 ? others : [...others, [key, next] as const]
  return entries.length === 0 ? rest : { ...rest, [kind]: Object.fromEntries(entries) }
}

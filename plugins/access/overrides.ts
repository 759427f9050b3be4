import type { ItemOverride, ServerConfig } from '../../schemas/server.ts'

/** What an admin may say something of. */
export type ItemKind = 'tools' | 'prompts' | 'resources'

/** What is to be said of an item; a description of null: what the upstream says. */
export interface OverrideChange { enabled?: boolean, description?: string | null }

/** A config with something said of one item, by its own name (a resource: its URI). What says nothing any more is left out. */
export function withOverride (config: ServerConfig, kind: ItemKind, key: string, { enabled, description }: OverrideChange): ServerConfig {
  const { [kind]: section = {}, ...rest } = config
  const next: ItemOverride = { ...overrideOf(config, kind, key) }
  if (enabled === true) delete next.enabled
  else if (enabled === false) next.enabled = false
  if (description === null) delete next.description
  else if (description !== undefined) next.description = description
  // An item may be called `__proto__`: entries, and no assignments.
  const others = Object.entries(section).filter(([name]) => name !== key)
  const entries = Object.keys(next).length === 0 ? others : [...others, [key, next] as const]
  return entries.length === 0 ? rest : { ...rest, [kind]: Object.fromEntries(entries) }
}

/** What is said of an item; undefined: nothing. */
export const overrideOf = (config: ServerConfig, kind: ItemKind, key: string): ItemOverride | undefined => {
  const section = config[kind]
  return section !== undefined && Object.hasOwn(section, key) ? section[key] : undefined
}

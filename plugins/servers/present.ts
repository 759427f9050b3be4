import type { Server } from '../../db/store.ts'
import { isObject } from '../../protocol/json.ts'
import type { Catalogue, Item } from '../../protocol/lists.ts'
import type { Status, Upstream } from '../upstream/upstream.ts'
import { maskConfig } from '../secrets/mask.ts'
import { defaultOwner } from '../users/username.ts'
import { ItemTexts } from './item-texts.ts'
import type { ItemKind } from '../access/overrides.ts'

/** One tool, prompt or resource as the management API shows it: as the upstream listed it, with what an admin said of it. */
export type ShownItem = Record<string, unknown> & { enabled: boolean, overridden?: boolean }

/** A server as the management API shows it. */
export interface ServerRecord {
  name: string
  status: Status
  error: string | null
  /** What does not stand in the way, but is not as configured. */
  warnings?: string[]
  tools: ItemTexts
  prompts: ItemTexts
  resources: ItemTexts
  config: Record<string, unknown>
  createdAt?: string
  connectedAt?: string
}

/** What of a config those see who may use a server but not manage it. */
const open = ['type', 'description', 'visibility', 'owner', 'enabled'] as const

/** A config with what holds where it is silent: a file may say less than what the gateway writes (DECISIONS §5). */
export const withDefaults = (config: Server['config']): Server['config'] & { owner: string } => ({
  ...config,
  owner: config.owner ?? defaultOwner,
  ...(config.visibility === undefined ? { visibility: 'private', visibilityDefaulted: true } : {}),
  enabled: config.enabled !== false
})

/** A server's record. Secrets are masked for those who manage it, and absent for the others. */
export function toRecord ({ name, config, problem }: Server, upstream: Upstream | undefined, manages: boolean): ServerRecord {
  const shown = withDefaults(config)
  const disabled = shown.enabled === false
  const lists = upstream?.listed?.lists
  const { connectedAt, warnings = [] } = upstream ?? {}
  return {
    name,
    status: disabled ? 'disabled' : upstream?.status ?? 'disconnected',
    error: disabled ? null : reason(problem ?? upstream?.error ?? null, manages),
    ...(manages && !disabled && warnings.length > 0 ? { warnings: [...warnings] } : {}),
    tools: new ItemTexts(lists?.tools ?? [], config.tools),
    prompts: new ItemTexts(lists?.prompts ?? [], config.prompts),
    resources: new ItemTexts(lists?.resources ?? [], config.resources),
    config: manages ? maskConfig(shown) : Object.fromEntries(open.flatMap((key) => shown[key] === undefined ? [] : [[key, shown[key]]])),
    createdAt: config.createdAt,
    connectedAt: connectedAt === undefined ? undefined : new Date(connectedAt).toISOString()
  }
}

/** Why it is not connected. What a child printed before it died may hold secrets of whoever configured it. */
const reason = (error: string | null, manages: boolean): string | null =>
  error === null || manages ? error : 'It is not connected; its owner can see why'

/** One item as the API shows it; undefined: the server does not list it, as far as is known. */
export function findItem (kind: ItemKind, key: string, { config }: Server, catalogues: readonly Catalogue[]): ShownItem | undefined {
  for (const { lists } of catalogues) {
    const item = lists[kind].find((each) => each.key === key)
    if (item) return toItem(item, config[kind])
  }
  return undefined
}

function toItem (item: Item, overrides: Server['config']['tools']): ShownItem {
  const value: unknown = JSON.parse(item.text)
  const override = overrides !== undefined && Object.hasOwn(overrides, item.key) ? overrides[item.key] : undefined
  return {
    ...(isObject(value) ? value : {}),
    ...(override?.description === undefined ? {} : { description: override.description, overridden: true }),
    enabled: override?.enabled !== false
  }
}

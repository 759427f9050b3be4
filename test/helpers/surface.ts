// Surfaces of servers that a test makes up: catalogues, sections of a view, and what a fold of them lists.
import { emptyCapabilityClass } from '../../protocol/capabilities.ts'
import { allListKinds, nextCatalogueId, type Catalogue, type Item, type ListKind } from '../../protocol/lists.ts'
import { ItemClaimsByServer, type ItemClaims } from '../../plugins/gateway/claims.ts'
import type { ViewSection, ItemTarget } from '../../plugins/gateway/section.ts'
import { buildSurface, type Surface, type SurfaceInput } from '../../plugins/gateway/surface.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { GroupMember } from '../../schemas/settings.ts'

export type Lists = Partial<Record<ListKind, Array<Record<string, unknown> | string>>>
export const keyOf: Record<ListKind, string> = { tools: 'name', prompts: 'name', resources: 'uri', resourceTemplates: 'uriTemplate', skills: 'uri', events: 'name' }

export function catalogueOf (given: Lists, more: Partial<Catalogue> = {}): Catalogue {
  const items = (kind: ListKind): Item[] => (given[kind] ?? []).map((item) => {
    const text = typeof item === 'string' ? item : JSON.stringify(item)
    return { key: String((JSON.parse(text) as Record<string, unknown>)[keyOf[kind]]), text }
  })
  return {
    id: nextCatalogueId(),
    capabilityClass: emptyCapabilityClass,
    version: '2025-11-25',
    serverInfo: '{"name":"up","version":"1"}',
    instructions: undefined,
    capabilities: { tools: {}, resources: {} },
    lists: Object.fromEntries(allListKinds.map((kind) => [kind, items(kind)])) as Record<ListKind, Item[]>,
    extras: { tools: '{}', prompts: '{}', resources: '{}', resourceTemplates: '{}', skills: '{}', events: '{}' },
    ...more
  }
}

export const section = (
  name: string,
  lists: Lists | undefined,
  { config = {}, member = {}, ...more }: { config?: ServerConfig; member?: Partial<GroupMember> } & Partial<Catalogue> = {}
): ViewSection => ({
  server: { name, config },
  label: member.alias ?? name,
  member: { name, ...member },
  isOwnedByAdmin: config.owner === undefined || config.owner === 'admin',
  provider: undefined,
  catalogue: lists && catalogueOf(lists, more)
})

/** Claims of what servers list now, and, where it is given, of what they listed before. */
export const claimsWith = (book: ItemClaimsByServer) => ({ server, catalogue }: ViewSection): ItemClaims => {
  const claims = book.of(server)
  claims.record(catalogue ? [catalogue] : [])
  return claims
}
export const fold = (sections: ViewSection[], more: Partial<SurfaceInput> = {}, before?: Surface): Surface =>
  buildSurface({ isRaw: false, separator: '-', supportsApps: false, sections, claimsOf: claimsWith(new ItemClaimsByServer()), ...more }, before)
/** Where a name leads, without the item itself. */
export const leadsTo = (target: ItemTarget | undefined): Omit<ItemTarget, 'item'> | undefined =>
  target && { provider: target.provider, key: target.key }
export const bodyOf = async (surface: Surface, kind: ListKind = 'tools'): Promise<string> =>
  String(await surface.parts[kind].list.bytes())
export const listed = async (surface: Surface, kind: ListKind): Promise<Array<Record<string, unknown>>> =>
  (JSON.parse(await bodyOf(surface, kind)) as Record<ListKind, Array<Record<string, unknown>>>)[kind]
export const keys = async (surface: Surface, kind: ListKind): Promise<unknown[]> =>
  (await listed(surface, kind)).map((item) => item[keyOf[kind]])

/** The meaning of each name of a fold: `<provider>/<own name>`. */
export const meanings = (surface: Surface, kind: ListKind): Map<string, string> =>
  new Map([...surface.parts[kind].targets].map(([name, { provider, key }]) => [name, `${provider}/${key}`]))

import type { ServerCapabilities } from './capabilities.ts'
import { smallMemberOf } from './json.ts'

/**
 * The four lists of MCP: the method that reads each, the capability that announces it, and the member that identifies
 * an item.
 */
export const listKinds = {
  tools: { method: 'tools/list', capability: 'tools', key: 'name' },
  prompts: { method: 'prompts/list', capability: 'prompts', key: 'name' },
  resources: { method: 'resources/list', capability: 'resources', key: 'uri' },
  resourceTemplates: { method: 'resources/templates/list', capability: 'resources', key: 'uriTemplate' }
} as const
export type ListKind = keyof typeof listKinds
export const kinds = Object.keys(listKinds) as ListKind[]

/** One tool, prompt, resource or resource template: its identifying member, and its JSON text as it was listed. */
export interface Item { readonly key: string, readonly text: string }

/** Everything that one provider lists to one capability class of clients. Immutable; replaced as a whole. */
export interface Catalogue {
  /** Unique within this process. */
  readonly id: number
  readonly capabilityClass: string
  /** The MCP revision of the connection that it was read on. */
  readonly version: string
  /** `serverInfo`, as JSON text. It may lack what MCP requires of one. */
  readonly serverInfo: string
  readonly instructions: string | undefined
  readonly capabilities: ServerCapabilities
  readonly lists: Readonly<Record<ListKind, readonly Item[]>>
  /** The other members of each list result (`_meta` and unknown ones), as the text of an object. */
  readonly extras: Readonly<Record<ListKind, string>>
}

/** The items that a provider lists or has listed, to any class of clients, and since when. */
export interface ListingHistory {
  /** Whether its lists have ever been read. */
  readonly isKnown: boolean
  /**
   * When an item was listed first: the time of the reading, in ms since the epoch, and whether that was the provider's
   * first one, which may come late because the provider does. Undefined: it has never listed the item.
   */
  first: (kind: ListKind, key: string) => { readonly reading: number, readonly isInitial: boolean } | undefined
  /** The keys of all items that it lists or has listed. */
  keys: (kind: ListKind) => Iterable<string>
}

/** True for a `serverInfo` that has what MCP requires (`Implementation`). @param text as JSON */
export const isServerInfo = (text: string): boolean =>
  typeof smallMemberOf(text, 'name') === 'string' && typeof smallMemberOf(text, 'version') === 'string'

let lastId = 0
export const nextCatalogueId = (): number => ++lastId

/** True when the two are equal to all clients. */
export function sameCatalogue (a: Catalogue, b: Catalogue): boolean {
  const sameList = (kind: ListKind): boolean =>
    a.extras[kind] === b.extras[kind] &&
    a.lists[kind].length === b.lists[kind].length &&
    a.lists[kind].every((item, at) => item.text === b.lists[kind][at]?.text)
  return (
    a.serverInfo === b.serverInfo &&
    a.instructions === b.instructions &&
    JSON.stringify(a.capabilities) === JSON.stringify(b.capabilities) &&
    kinds.every(sameList)
  )
}

/** An item as a value, with whatever members MCP or an extension gives it. */
type ItemValue = Readonly<Record<string, unknown>>

/** The identity and the items of a provider of the program's own, as values. */
interface OwnLists {
  readonly name: string
  readonly version: string
  readonly instructions?: string
  readonly tools?: ReadonlyArray<ItemValue & { readonly name: string }>
  readonly prompts?: ReadonlyArray<ItemValue & { readonly name: string }>
  readonly resources?: ReadonlyArray<ItemValue & { readonly uri: string }>
  readonly resourceTemplates?: ReadonlyArray<ItemValue & { readonly uriTemplate: string }>
}

/**
 * A catalogue of values, for providers that are not servers. It announces the capabilities of the lists that are given.
 */
export function makeCatalogue ({ name, version, instructions, ...given }: OwnLists): Catalogue {
  const capabilities: Record<string, unknown> = {}
  const itemsOf = (kind: ListKind): Item[] => {
    const values = given[kind]
    if (values !== undefined) capabilities[listKinds[kind].capability] = {}
    return (values ?? []).map((value) => ({ key: String(value[listKinds[kind].key]), text: JSON.stringify(value) }))
  }
  const lists = {
    tools: itemsOf('tools'),
    prompts: itemsOf('prompts'),
    resources: itemsOf('resources'),
    resourceTemplates: itemsOf('resourceTemplates')
  }
  return {
    id: nextCatalogueId(),
    capabilityClass: '{}',
    version: '',
    serverInfo: JSON.stringify({ name, version }),
    instructions,
    capabilities,
    lists,
    extras: { tools: '{}', prompts: '{}', resources: '{}', resourceTemplates: '{}' }
  }
}

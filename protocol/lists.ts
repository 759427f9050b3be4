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
export const allListKinds = Object.keys(listKinds) as ListKind[]

/** A tool, prompt, resource or resource template: its identifying member, and its JSON text as listed. */
export interface Item { readonly key: string, readonly text: string }

/** All that one provider lists to one capability class of clients. Immutable; replaced as a whole. */
export interface Catalogue {
  /** Unique within this process. */
  readonly id: number
  readonly capabilityClass: string
  /** The MCP revision of the connection that it was read from. */
  readonly version: string
  /** `serverInfo`, as JSON text. It may lack required members. */
  readonly serverInfo: string
  readonly instructions: string | undefined
  /** The other members of the result that states the identity, as the text of an object. Default: none. */
  readonly identityExtra?: string
  readonly capabilities: ServerCapabilities
  readonly lists: Readonly<Record<ListKind, readonly Item[]>>
  /** The other members of each list result (`_meta` and unknown ones), as the text of an object. */
  readonly extras: Readonly<Record<ListKind, string>>
}

/** The items that a provider lists or has listed, to any class of clients, and when each was first listed. */
export interface ListingHistory {
  /** Whether its lists have ever been read. */
  readonly isKnown: boolean
  /**
   * When an item was first listed: the time of that reading, in ms since the epoch, and whether it was the provider's
   * first reading, which may be late when the provider starts late. Undefined: the item was never listed.
   */
  firstListing: (kind: ListKind, key: string) => { readonly reading: number, readonly isInitial: boolean } | undefined
  /** The keys of all items that it lists or has listed. */
  keys: (kind: ListKind) => Iterable<string>
}

/** Whether `serverInfo` has the required members of MCP's `Implementation`. @param text as JSON */
export const isServerInfo = (text: string): boolean =>
  typeof smallMemberOf(text, 'name') === 'string' && typeof smallMemberOf(text, 'version') === 'string'

let lastId = 0
export const nextCatalogueId = (): number => ++lastId

/** Whether two catalogues are equal for every client. */
export function isSameCatalogue (a: Catalogue, b: Catalogue): boolean {
  const sameList = (kind: ListKind): boolean =>
    a.extras[kind] === b.extras[kind] &&
    a.lists[kind].length === b.lists[kind].length &&
    a.lists[kind].every((item, at) => item.text === b.lists[kind][at]?.text)
  return (
    a.serverInfo === b.serverInfo &&
    a.instructions === b.instructions &&
    a.identityExtra === b.identityExtra &&
    JSON.stringify(a.capabilities) === JSON.stringify(b.capabilities) &&
    allListKinds.every(sameList)
  )
}

/** An item as a value, with any members of MCP or an extension. */
type ItemValue = Readonly<Record<string, unknown>>

/** The identity and items of a provider that is part of the program, as values. */
interface StaticLists {
  readonly name: string
  readonly version: string
  readonly instructions?: string
  readonly tools?: ReadonlyArray<ItemValue & { readonly name: string }>
  readonly prompts?: ReadonlyArray<ItemValue & { readonly name: string }>
  readonly resources?: ReadonlyArray<ItemValue & { readonly uri: string }>
  readonly resourceTemplates?: ReadonlyArray<ItemValue & { readonly uriTemplate: string }>
}

/**
 * Makes a catalogue from values, for providers that are not servers. It announces the capabilities of the lists that
 * are given.
 */
export function makeCatalogue ({ name, version, instructions, ...given }: StaticLists): Catalogue {
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

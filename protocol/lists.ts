import { eventsExtension, type ServerCapabilities } from './capabilities.ts'
import { isObject, smallMemberOf } from './json.ts'

/**
 * The lists of MCP and of the Events extension (SEP-3415): the method that reads each, the capability or extension that
 * announces it, and the member that identifies an item. The kind is the member of the result.
 */
export const listKinds = {
  tools: { method: 'tools/list', capability: 'tools', key: 'name' },
  prompts: { method: 'prompts/list', capability: 'prompts', key: 'name' },
  resources: { method: 'resources/list', capability: 'resources', key: 'uri' },
  resourceTemplates: { method: 'resources/templates/list', capability: 'resources', key: 'uriTemplate' },
  events: { method: 'events/list', capability: 'events', key: 'name' }
} as const
export type ListKind = keyof typeof listKinds
export const allListKinds = Object.keys(listKinds) as ListKind[]

/** The kinds whose items are called by name, which has a prefix on merged routes. */
export type NamedKind = 'tools' | 'prompts' | 'events'
export const isNamedKind = (kind: ListKind): kind is NamedKind => listKinds[kind].key === 'name'

/** A value for each kind of list. */
export const byListKind = <Value>(valueOf: (kind: ListKind) => Value): Record<ListKind, Value> =>
  Object.fromEntries(allListKinds.map((kind) => [kind, valueOf(kind)])) as Record<ListKind, Value>

/** The extensions that announce a kind of list. */
const extensionsOf: Partial<Record<ListKind, string>> = { events: eventsExtension }

/** The capability or extension that announces a kind of list; undefined when it is not announced. */
export function capabilityOf (capabilities: ServerCapabilities, kind: ListKind): Record<string, unknown> | undefined {
  const { [listKinds[kind].capability]: own, extensions } = capabilities
  const { [kind]: name } = extensionsOf
  const extension = name !== undefined && isObject(extensions) ? extensions[name] : undefined
  return isObject(extension) ? extension : isObject(own) ? own : undefined
}

/** The notification that a kind of list has changed. */
export const listChangedMethod = (kind: ListKind): string =>
  `notifications/${listKinds[kind].method.split('/', 1)[0] ?? kind}/list_changed`

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
    const values: readonly ItemValue[] | undefined = kind === 'events' ? undefined : given[kind]
    if (values !== undefined) capabilities[listKinds[kind].capability] = {}
    return (values ?? []).map((value) => ({ key: String(value[listKinds[kind].key]), text: JSON.stringify(value) }))
  }
  const lists = byListKind(itemsOf)
  return {
    id: nextCatalogueId(),
    capabilityClass: '{}',
    version: '',
    serverInfo: JSON.stringify({ name, version }),
    instructions,
    capabilities,
    lists,
    extras: byListKind(() => '{}')
  }
}

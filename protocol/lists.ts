import { emptyCapabilityClass, eventsExtension, skillsExtension, type ServerCapabilities } from './capabilities.ts'
import { isObject, parseSmallMember } from './json.ts'

interface ListFacts {
  readonly method: string
  /** The capability that announces the list and its changes. */
  readonly capability: 'tools' | 'prompts' | 'resources' | 'events'
  /** The extension that defines the list, and announces it instead of the capability. */
  readonly extension?: string
  /** The member that identifies an item. */
  readonly key: string
}

/** The lists of MCP and its extensions. */
export const listKinds = {
  tools: { method: 'tools/list', capability: 'tools', key: 'name' },
  prompts: { method: 'prompts/list', capability: 'prompts', key: 'name' },
  resources: { method: 'resources/list', capability: 'resources', key: 'uri' },
  resourceTemplates: { method: 'resources/templates/list', capability: 'resources', key: 'uriTemplate' },
  skills: { method: 'skills/list', capability: 'resources', extension: skillsExtension, key: 'uri' },
  events: { method: 'events/list', capability: 'events', extension: eventsExtension, key: 'name' }
} as const satisfies Readonly<Record<string, ListFacts>>
export type ListKind = keyof typeof listKinds
export const allListKinds = Object.keys(listKinds) as ListKind[]

/** Returns the extension that defines a list; undefined if MCP itself does. */
export const listExtensionOf = (kind: ListKind): string | undefined => (listKinds[kind] as ListFacts).extension

/** Returns the extension settings, or the capability, that announces a list; undefined if it is not announced. */
export function listCapabilityOf (
  capabilities: ServerCapabilities, kind: ListKind
): Record<string, unknown> | undefined {
  const { [listKinds[kind].capability]: own, extensions } = capabilities
  const name = listExtensionOf(kind)
  const settings = name !== undefined && isObject(extensions) ? extensions[name] : undefined
  if (isObject(settings)) return settings
  // Drafts of the Events extension used a capability.
  return (name === undefined || kind === 'events') && isObject(own) ? own : undefined
}

/** Whether a server with these capabilities has a list. */
export const declaresList = (capabilities: ServerCapabilities, kind: ListKind): boolean =>
  listCapabilityOf(capabilities, kind) !== undefined

/** The kinds of items that are identified by names, which have a prefix on merged routes. */
export type NamedKind = 'tools' | 'prompts' | 'events'
export const isNamedKind = (kind: ListKind): kind is NamedKind => listKinds[kind].key === 'name'

/** Builds a record with a value for each kind of list. */
export const byListKind = <Value>(valueOf: (kind: ListKind) => Value): Record<ListKind, Value> =>
  Object.fromEntries(allListKinds.map((kind) => [kind, valueOf(kind)])) as Record<ListKind, Value>

/** Returns the method of the notification about changes of a list. Resources, templates and skills share one. */
export const listChangedMethod = (kind: ListKind): string =>
  `notifications/${listKinds[kind].capability}/list_changed`

/** An item of a list: the value of its identifying member, and its JSON text as listed. */
export interface Item { readonly key: string, readonly text: string }

/** Everything that one provider lists for one capability class of clients. Immutable; replaced as a whole. */
export interface Catalogue {
  /** Unique within this process. */
  readonly id: number
  readonly capabilityClass: string
  /** The MCP revision of the connection over which it was read; '' if there was none. */
  readonly version: string
  /** `serverInfo`, as JSON text. It may lack required members. */
  readonly serverInfo: string
  readonly instructions: string | undefined
  /** As in `ServerIdentity`. Default: none. */
  readonly identityExtra?: string
  readonly capabilities: ServerCapabilities
  readonly lists: Readonly<Record<ListKind, readonly Item[]>>
  /** The members of each list result besides the items (`_meta` and unknown ones), as the text of an object. */
  readonly extras: Readonly<Record<ListKind, string>>
}

/** The items that a provider lists or has listed, for any clients, and when each was first listed. */
export interface ListingHistory {
  /** Whether the provider's lists have ever been read. */
  readonly isKnown: boolean
  /**
   * Returns when an item was first listed. `reading`: the time of that read, in ms since the epoch; `isInitial`:
   * whether it was the first read of this provider. Undefined if the item was never listed.
   */
  firstListing: (kind: ListKind, key: string) => { readonly reading: number, readonly isInitial: boolean } | undefined
  /** Returns the keys of all items that the provider lists or has listed. */
  keys: (kind: ListKind) => Iterable<string>
}

/** Whether a `serverInfo`, given as JSON text, has the members that MCP's `Implementation` requires. */
export const isServerInfo = (text: string): boolean =>
  typeof parseSmallMember(text, 'name') === 'string' && typeof parseSmallMember(text, 'version') === 'string'

let lastId = 0
export const nextCatalogueId = (): number => ++lastId

/** Whether two catalogues look the same to every client. */
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

/** An item as an object, with any members of MCP or an extension. */
type ItemValue = Readonly<Record<string, unknown>>

/** The identity and items of a provider that is not a server. */
interface StaticLists {
  readonly name: string
  readonly version: string
  readonly instructions?: string
  readonly tools?: ReadonlyArray<ItemValue & { readonly name: string }>
  readonly prompts?: ReadonlyArray<ItemValue & { readonly name: string }>
  readonly resources?: ReadonlyArray<ItemValue & { readonly uri: string }>
  readonly resourceTemplates?: ReadonlyArray<ItemValue & { readonly uriTemplate: string }>
  readonly skills?: ReadonlyArray<ItemValue & { readonly uri: string }>
}

/** Creates the catalogue of a provider that is not a server. It announces the lists that are given. */
export function makeStaticCatalogue ({ name, version, instructions, ...given }: StaticLists): Catalogue {
  const capabilities: Record<string, unknown> = {}
  const itemsOf = (kind: ListKind): Item[] => {
    const values: readonly ItemValue[] | undefined = kind === 'events' ? undefined : given[kind]
    const extension = listExtensionOf(kind)
    if (values !== undefined) {
      capabilities[listKinds[kind].capability] = {}
      if (extension !== undefined) capabilities.extensions = { [extension]: {} }
    }
    return (values ?? []).map((value) => ({ key: String(value[listKinds[kind].key]), text: JSON.stringify(value) }))
  }
  const lists = byListKind(itemsOf)
  return {
    id: nextCatalogueId(),
    capabilityClass: emptyCapabilityClass,
    version: '',
    serverInfo: JSON.stringify({ name, version }),
    instructions,
    capabilities,
    lists,
    extras: byListKind(() => '{}')
  }
}

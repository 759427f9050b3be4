import { mergeCapabilities, withListChanged, type ServerCapabilities } from '../../protocol/capabilities.ts'
import {
  isNamedKind, isServerInfo, allListKinds, byListKind, type Catalogue, type Item, type ListingHistory, type ListKind,
  type NamedKind
} from '../../protocol/lists.ts'
import { skillFileUris } from '../../protocol/skills.ts'
import { isModernVersion } from '../../protocol/modern/envelope.ts'
import {
  alternativeItemName, prefixedName, acceptedPrefixesOf, prefixOf, unconvertedPrefixOf
} from '../settings/index.ts'
import { ListResult, type ListEntry } from './list.ts'
import {
  collectHidden, hasHiddenResources, isInHiddenSkill, isListedResourceHidden, createHiddenUriCheck, type HiddenResources
} from './hidden-resources.ts'
import { Precedence } from './precedence.ts'
import { toShownItem, type ViewSection, type ShownItem, type ItemTarget } from './section.ts'
import {
  adminsTemplates, mergedTemplates, createUriOwnerLookup, rawTemplates, createReservedUriCheck
} from './surface-templates.ts'
import { maxUriLength, matchesTemplate, type ResourceTemplate } from './templates.ts'
import { gatewayLimits } from './limits.ts'

/** One list of a view, and the provider's item for each name or URI in it. */
interface SurfacePart {
  readonly list: ListResult
  readonly targets: ReadonlyMap<string, ItemTarget>
  /** Accepted names that are not listed: other names of items, such as those with a hash. */
  readonly aliases: ReadonlyMap<string, ItemTarget>
  /** Appended to the error for an unknown item. */
  readonly hint?: string
}

/** Everything that a view shows, for one state of the catalogues and settings. */
export interface Surface {
  readonly parts: Readonly<Record<ListKind, SurfacePart>>
  /**
   * The resource templates, in the order in which a URI is compared with them. A target without an item is a template
   * that its server does not list now: a URI that matches it cannot be read.
   */
  readonly templates: ReadonlyArray<ResourceTemplate<ItemTarget>>
  /** The server that owns a resource on a merged route, listed now or not; undefined if there is none. */
  readonly ownerOf: (uri: string) => string | undefined
  /** The admin's server that has this prompt or resource on a merged route, listed now or not. */
  readonly adminsServer: (kind: 'prompts' | 'resources', name: string) => string | undefined
  /** Resources that are disabled, not selected, or hidden by hooks; templates must not match them either. */
  readonly hidden: HiddenResources
  /** The names of the view's providers, including those whose lists are unknown. */
  readonly providers: readonly string[]
  /** The capabilities of the providers whose lists are known. */
  readonly capabilities: ReadonlyMap<string, ServerCapabilities>
  readonly announced: ServerCapabilities
  /** The `serverInfo` of a single server, as JSON text; undefined: use the gateway's. */
  readonly serverInfo: string | undefined
  /** Whether `serverInfo` is known, and has the members that MCP requires. */
  readonly hasValidServerInfo: boolean
  readonly instructions: string | undefined
  /** Other members of a single server's `initialize` or `server/discover` result, as JSON; `{}` for other routes. */
  readonly identityExtra: string
}

export interface SurfaceInput {
  /** Whether there is one server, shown with its raw names and its own identity. */
  isRaw: boolean
  separator: string
  sections: readonly ViewSection[]
  claimsOf: (section: ViewSection) => ListingHistory
  /** Whether the client supports MCP Apps. */
  supportsApps: boolean
}

type Builder =
  Record<ListKind,
    { entries: ListEntry[], targets: Map<string, ItemTarget>, aliases: Map<string, ItemTarget>, extra: string }>

/** Merges the catalogues of a view's providers into its surface. Lists that equal those of `before` are reused. */
export function buildSurface (input: SurfaceInput, before?: Surface): Surface {
  const built: Builder = byListKind(emptyBuilder)
  const capabilities = new Map<string, ServerCapabilities>()
  const precedence = input.isRaw ? undefined : new Precedence(input.sections, input.separator, input.claimsOf)
  const hasUnconverted = input.sections.some(({ label }) => acceptedPrefixesOf(label, input.separator).length > 1)
  const unconverted = hasUnconverted ? new Precedence(input.sections, input.separator, input.claimsOf, true) : undefined
  const templates = precedence && mergedTemplates(precedence)
  const admins = adminsTemplates(input.sections, templates ?? [])
  const isReserved = createReservedUriCheck(admins)
  const hidden = collectHidden(input.sections)
  for (const [at, section] of input.sections.entries()) {
    const { server, catalogue } = section
    if (!catalogue) continue
    capabilities.set(server.name, catalogue.capabilities)
    for (const kind of allListKinds) {
      if (input.isRaw) built[kind].extra = catalogue.extras[kind]
      const isExcluded = (uri: string): boolean => kind === 'resources' && isInHiddenSkill(hidden, server.name, uri)
      if (!precedence) addRaw(kind, built, section, catalogue, input.supportsApps, isExcluded)
      else if (isNamedKind(kind)) {
        addNamed(kind, built, input, at, catalogue, precedence, unconverted ?? precedence)
      } else {
        addLocated(kind, built, section, at, catalogue, precedence, (uri) => isExcluded(uri) ||
          (!section.isOwnedByAdmin && (isReserved(uri) || isListedResourceHidden(hidden, server.name, uri))))
      }
    }
  }
  const only = input.isRaw ? input.sections[0]?.catalogue : undefined
  return {
    parts: byListKind(partsOf(built, before)),
    templates: templates ?? rawTemplates(built.resourceTemplates.targets),
    ownerOf: precedence ? createUriOwnerLookup(precedence, admins) : returnUndefined,
    adminsServer: precedence ? adminsServerIn(precedence) : returnUndefined,
    hidden,
    providers: input.sections.map(({ server }) => server.name),
    capabilities,
    announced: only ? withListChanged(only.capabilities) : mergeCapabilities([...capabilities.values()]),
    serverInfo: only?.serverInfo,
    hasValidServerInfo: only !== undefined && isServerInfo(only.serverInfo),
    instructions: only ? only.instructions : mergedInstructions(input.sections),
    identityExtra: only?.identityExtra ?? '{}'
  }
}

// The functions of a surface are created outside `buildSurface`: closures in it would keep its variables in memory, and
// through `before` all earlier surfaces.

const returnUndefined = (): undefined => undefined

const adminsServerIn = (precedence: Precedence): Surface['adminsServer'] =>
  (kind, name) => precedence.adminsServer(kind, name)

const partsOf = (built: Builder, before: Surface | undefined) => (kind: ListKind): SurfacePart => {
  const { entries, targets, aliases, extra } = built[kind]
  const list = new ListResult(kind, entries, extra)
  const old = before?.parts[kind].list
  // An equal list stays the same object, so that no client is notified.
  return { list: old?.equals(list) === true ? old : list, targets, aliases }
}

const emptyBuilder = (): Builder[ListKind] => ({ entries: [], targets: new Map(), aliases: new Map(), extra: '{}' })

/** Adds items under the names that their server gives them, on the route of a single server. */
function addRaw (
  kind: ListKind,
  built: Builder,
  section: ViewSection,
  catalogue: Catalogue,
  supportsApps: boolean,
  isExcluded: (uri: string) => boolean
): void {
  for (const item of catalogue.lists[kind]) {
    const shown = toShownItem(section, kind, item, supportsApps)
    if (!shown?.enabled || isExcluded(item.key) || built[kind].targets.has(item.key)) continue
    add(built[kind], section, item, item.key, shown)
  }
}

/** Adds tools, prompts or event types under their names on a merged route. */
function addNamed (
  kind: NamedKind,
  built: Builder,
  { separator, sections, supportsApps }: SurfaceInput,
  at: number,
  catalogue: Catalogue,
  precedence: Precedence,
  unconverted: Precedence
): void {
  const section = sections[at]
  if (!section) return
  const { server, label } = section
  const [prefix, unconvertedPrefix] = [prefixOf(label, separator), unconvertedPrefixOf(label, separator)]
  const { targets, aliases } = built[kind]
  for (const item of catalogue.lists[kind]) {
    const shown = toShownItem(section, kind, item, supportsApps)
    if (!shown?.enabled) continue
    const plain = prefixedName(prefix, item.key)
    const taken = targets.get(plain)
    // A group may contain the server twice.
    if (taken?.provider === server.name && taken.key === item.key) continue
    const standing = precedence.plainNameStanding(at, kind, item.key)
    const name = standing === 'lost' || taken ? alternativeItemName(plain, server.name, item.key) : plain
    if (targets.has(name)) continue
    add(built[kind], section, item, name, shown)
    if (standing === 'won' && name === plain) {
      aliases.set(alternativeItemName(plain, server.name, item.key), { provider: server.name, key: item.key, item })
    }
    // The name with label and separator as configured is accepted, but not listed, since model APIs reject it.
    const given = `${unconvertedPrefix}${item.key}`
    if (given !== plain && !aliases.has(given) && unconverted.plainNameStanding(at, kind, item.key) !== 'lost') {
      aliases.set(given, { provider: server.name, key: item.key, item })
    }
  }
}

/**
 * Adds the resources, templates or skills that the section owns, under their URIs. The section owns a skill if it owns
 * the URIs of all files of the skill.
 * @param isRefused whether the section must not show a URI that it owns
 */
function addLocated (
  kind: Exclude<ListKind, NamedKind>,
  built: Builder,
  section: ViewSection,
  at: number,
  catalogue: Catalogue,
  precedence: Precedence,
  isRefused: (uri: string) => boolean
): void {
  for (const item of catalogue.lists[kind]) {
    const shown = toShownItem(section, kind, item, false)
    if (!shown?.enabled || built[kind].targets.has(item.key) || !precedence.ownsItem(at, kind, item)) continue
    if (urisOf(kind, item).some(isRefused)) continue
    add(built[kind], section, item, item.key, shown)
  }
}

/** The URIs under which an item can be read: for a skill, the URIs of its files; for a template, none. */
function urisOf (kind: ListKind, item: Item): readonly string[] {
  return kind === 'skills' ? skillFileUris(item) : kind === 'resourceTemplates' ? [] : [item.key]
}

function add (
  built: Builder[ListKind], section: ViewSection, item: Item, name: string, { text, description }: ShownItem
): void {
  built.targets.set(name, { provider: section.server.name, key: item.key, item })
  const entry = toEntry(text, item.key, name === item.key ? undefined : name, description)
  built.entries.push(
    isModernVersion(section.catalogue?.version) ? { ...entry, item, isModern: true } : { ...entry, item }
  )
}

/** Creates an entry with only the members that differ. */
function toEntry (text: string, key: string, name: string | undefined, description: string | undefined): ListEntry {
  if (description === undefined) return name === undefined ? { text, key } : { text, name }
  return name === undefined ? { text, key, description } : { text, name, description }
}

/** The instructions of a merged route: the instructions of each server, with its label as a heading. */
function mergedInstructions (sections: readonly ViewSection[]): string | undefined {
  let left: number = gatewayLimits.mergedInstructions
  const parts = sections.flatMap(({ label, catalogue }) => {
    if (!catalogue?.instructions) return []
    const part = `# ${label}\n\n${catalogue.instructions}`
    left -= part.length
    return left >= 0 ? [part] : []
  })
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

/**
 * Whether a server's resource, listed or not, is hidden, or owned by another server. If anything is hidden, URIs longer
 * than `maxUriLength` are, too.
 */
export function isResourceHidden ({ parts, hidden, ownerOf }: Surface, server: string, uri: string): boolean {
  const isListed = parts.resources.targets.get(uri)?.provider === server
  const isHiddenAtServer = (): boolean =>
    isListed ? isListedResourceHidden(hidden, server, uri) : createHiddenUriCheck(hidden, uri)(server)
  if (hasHiddenResources(hidden) && (uri.length > maxUriLength || isHiddenAtServer())) return true
  return (ownerOf(uri) ?? server) !== server
}

/** Finds the provider to read a URI from, with its resource of this URI, or its matching template or skill folder. */
export function findResourceTarget (
  { parts, templates, hidden, ownerOf }: Surface, uri: string
): ItemTarget | undefined {
  const listed = parts.resources.targets.get(uri)
  if (listed || templates.length === 0 || uri.length > maxUriLength) return listed
  const isHiddenAt = createHiddenUriCheck(hidden, uri)
  // A template does not match a resource that another server has listed.
  const owner = ownerOf(uri)
  const work = { left: gatewayLimits.templateWork }
  const found = templates.find(({ literals, target: { provider } }) =>
    (owner ?? provider) === provider && matchesTemplate(literals, uri, work) && !isHiddenAt(provider))
  return found?.target.item && found.target
}

import { union, routeCapabilities, type ServerCapabilities } from '../../protocol/capabilities.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { isServerInfo, kinds, type Catalogue, type Item, type ListingHistory, type ListKind } from '../../protocol/lists.ts'
import { isModernVersion } from '../../protocol/modern/envelope.ts'
import { itemOtherName, nameAfter, prefixesOf, prefixOf, type View, writtenPrefixOf } from '../settings/index.ts'
import { limits } from '../base/limits/index.ts'
import { List, type ListEntry } from './list.ts'
import { hiddenOf, hidesAny, isOff, unlistedIsOff, type Hidden } from './hidden-resources.ts'
import { Precedence, showsKey } from './precedence.ts'
import { showItem, type Section, type SectionItem } from './section.ts'
import { literalsOf, longestUri, matchesTemplate, type ResourceTemplate } from './templates.ts'

/** The target of an exposed name: the provider of the item, and the item's own name. */
export interface Target {
  readonly provider: string
  readonly key: string
  readonly item?: Item
  /**
   * Of a tool of a presentation that stands for the call of another tool: calls that one in its place.
   * @param call runs `tools/call` for another exchange
   */
  readonly redirect?: (exchange: Exchange<View>, call: (exchange: Exchange<View>) => Promise<string>) => Promise<string>
}

/** One list, and the targets of its names. */
interface Part {
  readonly list: List
  readonly targets: ReadonlyMap<string, Target>
  /** Other names that items had, or will have, while it is not known whether a plain name is theirs. They are accepted, not listed. */
  readonly aliases: ReadonlyMap<string, Target>
  /** What a client that names an unknown item is told besides. */
  readonly hint?: string
}

/** All that a view sees at one generation. */
export interface Surface {
  readonly parts: Readonly<Record<ListKind, Part>>
  /**
   * In the order in which they are tried: admins' servers before users', then those with the longest literals, which are the most
   * specific. A target without an item is a template that its server does not list any more: what matches it is read nowhere.
   */
  readonly templates: ReadonlyArray<ResourceTemplate<Target>>
  /** The server that a resource belongs to on a merged route, listed now or not. */
  readonly ownerOf: (uri: string) => string | undefined
  /** The admin's server that shows a prompt or resource of this name or URI on a merged route, listed now or not. */
  readonly adminsServer: (kind: 'prompts' | 'resources', name: string) => string | undefined
  /** Resources that are disabled or not selected, which templates must not match either. */
  readonly hidden: Hidden
  /** The names of the providers behind it, known or not. */
  readonly providers: readonly string[]
  /** The capabilities of each provider that is known. */
  readonly capabilities: ReadonlyMap<string, ServerCapabilities>
  /** The capabilities that the route announces. */
  readonly shown: ServerCapabilities
  /** Of a single server, as JSON text; undefined: the gateway's own. */
  readonly serverInfo: string | undefined
  /** The single server says who it is as MCP requires. */
  readonly isNamed: boolean
  readonly instructions: string | undefined
}

export interface SurfaceInput {
  /** One server under its raw names and its own identity. */
  raw: boolean
  separator: string
  sections: readonly Section[]
  claimsOf: (section: Section) => ListingHistory
  /** The client shows MCP Apps. */
  apps: boolean
}

type Builder = Record<ListKind, { entries: ListEntry[], targets: Map<string, Target>, aliases: Map<string, Target>, extra: string }>

/** Makes a view's surface of the catalogues of its providers. Pure. Lists that are equal to those of `before` are reused. */
export function foldSurface (input: SurfaceInput, before?: Surface): Surface {
  const built: Builder = { tools: empty(), prompts: empty(), resources: empty(), resourceTemplates: empty() }
  const capabilities = new Map<string, ServerCapabilities>()
  const precedence = input.raw ? undefined : new Precedence(input.sections, input.separator, input.claimsOf)
  const isWrittenOtherwise = input.sections.some(({ label }) => prefixesOf(label, input.separator).length > 1)
  const written = isWrittenOtherwise ? new Precedence(input.sections, input.separator, input.claimsOf, true) : undefined
  const templates = precedence && mergedTemplates(precedence)
  const admins = adminsTemplates(input.sections, templates ?? [])
  const isReserved = reservedBy(admins)
  const hidden = hiddenOf(input.sections)
  for (const [at, section] of input.sections.entries()) {
    const { server, catalogue } = section
    if (!catalogue) continue
    capabilities.set(server.name, catalogue.capabilities)
    for (const kind of kinds) {
      if (input.raw) built[kind].extra = catalogue.extras[kind]
      if (!precedence) addRaw(kind, built, section, catalogue, input.apps)
      else if (kind === 'tools' || kind === 'prompts') addNamed(kind, built, input, at, catalogue, precedence, written ?? precedence)
      else addLocated(kind, built, section, at, catalogue, precedence, (uri) => isReserved(uri) || isOff(hidden, server.name, uri))
    }
  }
  const only = input.raw ? input.sections[0]?.catalogue : undefined
  const part = partsOf(built, before)
  return {
    parts: { tools: part('tools'), prompts: part('prompts'), resources: part('resources'), resourceTemplates: part('resourceTemplates') },
    templates: templates ?? rawTemplates(built.resourceTemplates.targets),
    ownerOf: precedence ? ownerIn(precedence, admins) : none,
    adminsServer: precedence ? adminsServerIn(precedence) : none,
    hidden,
    providers: input.sections.map(({ server }) => server.name),
    capabilities,
    shown: only ? routeCapabilities(only.capabilities) : union([...capabilities.values()]),
    serverInfo: only?.serverInfo,
    isNamed: only !== undefined && isServerInfo(only.serverInfo),
    instructions: only ? only.instructions : mergedInstructions(input.sections)
  }
}

// The functions that a surface holds are created here and not inside `foldSurface`: closures of one function share its variables, so that
// each surface would keep `before` in memory, and with it all earlier surfaces.

const none = (): undefined => undefined

const adminsServerIn = (precedence: Precedence): Surface['adminsServer'] => (kind, name) => precedence.adminsServer(kind, name)

const partsOf = (built: Builder, before: Surface | undefined) => (kind: ListKind): Part => {
  const { entries, targets, aliases, extra } = built[kind]
  const list = new List(kind, entries, extra)
  const old = before?.parts[kind].list
  // An equal list is the same object, so that nobody is notified; the targets of its names may differ.
  return { list: old?.equals(list) === true ? old : list, targets, aliases }
}

const empty = (): Builder[ListKind] => ({ entries: [], targets: new Map(), aliases: new Map(), extra: '{}' })

/** The characters of a template's literals. */
const lengthOf = (literals: readonly string[]): number => literals.reduce((sum, { length }) => sum + length, 0)

function rawTemplates (targets: ReadonlyMap<string, Target>): Array<ResourceTemplate<Target>> {
  return [...targets]
    .map(([uriTemplate, target]) => {
      const literals = literalsOf(uriTemplate)
      return { literals, target, length: lengthOf(literals) }
    })
    .sort((one, other) => other.length - one.length)
}

/** The templates of a merged route, each once, also those that their servers do not list any more. */
function mergedTemplates (precedence: Precedence): Array<ResourceTemplate<Target>> {
  const kind = 'resourceTemplates'
  const found = precedence.claimants.flatMap(({ at, section, claims }) => {
    const items = new Map(section.catalogue?.lists[kind].map((item) => [item.key, item]))
    return [...claims.keys(kind)]
      .filter((key) => showsKey(section, kind, key) && precedence.ownsUri(at, kind, key))
      .map((key) => {
        const literals = literalsOf(key)
        return {
          literals,
          target: { provider: section.server.name, key, item: items.get(key) },
          ofAdmin: section.ofAdmin,
          late: lateness(claims.first(kind, key)),
          length: lengthOf(literals)
        }
      })
  })
  return found
    // Among several servers, a template that matches everything must not capture the others' resources.
    .filter(({ literals }) => /^[a-z][a-z0-9+.-]*:/i.test(literals[0] ?? ''))
    // Among servers of one rank, a template that was listed later never precedes one that was listed earlier, however specific it is.
    .sort((one, other) => Number(other.ofAdmin) - Number(one.ofAdmin) || one.late - other.late || other.length - one.length)
}

const lateness = (first: ReturnType<ListingHistory['first']>): number => first === undefined || first.isInitial ? 0 : first.reading

/** The templates of admins' servers, where there are servers of users as well. */
function adminsTemplates (
  sections: readonly Section[],
  templates: ReadonlyArray<ResourceTemplate<Target>>
): ReadonlyArray<ResourceTemplate<Target>> {
  if (sections.every(({ ofAdmin }) => ofAdmin)) return []
  const admins = new Set(sections.filter(({ ofAdmin }) => ofAdmin).map(({ server }) => server.name))
  return templates.filter(({ target }) => admins.has(target.provider))
}

/** Whether one of these templates matches a URI, so that a user's server must not provide it; also when too many URIs were asked about. */
function reservedBy (templates: ReadonlyArray<ResourceTemplate<Target>>): (uri: string) => boolean {
  let left: number = limits.templateComparisons
  return (uri) => {
    left -= templates.length
    const work = { left: limits.templateWork }
    return templates.length > 0 && (left < 0 || templates.some(({ literals }) => matchesTemplate(literals, uri, work)) || work.left < 0)
  }
}

/** The name of the server that a URI belongs to on a merged route. @param admins templates, which come before what users' servers list */
function ownerIn (precedence: Precedence, admins: ReadonlyArray<ResourceTemplate<Target>>): Surface['ownerOf'] {
  return (uri) => {
    const owner = precedence.ownerOf(uri)
    const work = { left: limits.templateWork }
    const template = owner?.ofAdmin === false ? admins.find(({ literals }) => matchesTemplate(literals, uri, work)) : undefined
    return template?.target.provider ?? owner?.server.name
  }
}

function addRaw (kind: ListKind, built: Builder, section: Section, catalogue: Catalogue, apps: boolean): void {
  for (const item of catalogue.lists[kind]) {
    const shown = showItem(section, kind, item, apps)
    if (shown?.enabled && !built[kind].targets.has(item.key)) add(built[kind], section, item, item.key, shown)
  }
}

/** Adds tools or prompts under their names on a merged route. */
function addNamed (
  kind: 'tools' | 'prompts',
  built: Builder,
  { separator, sections, apps }: SurfaceInput,
  at: number,
  catalogue: Catalogue,
  precedence: Precedence,
  written: Precedence
): void {
  const section = sections[at]
  if (!section) return
  const { server, label } = section
  const [prefix, writtenPrefix] = [prefixOf(label, separator), writtenPrefixOf(label, separator)]
  const { targets, aliases } = built[kind]
  for (const item of catalogue.lists[kind]) {
    const shown = showItem(section, kind, item, apps)
    if (!shown?.enabled) continue
    const plain = nameAfter(prefix, item.key)
    const taken = targets.get(plain)
    // A member that a group names twice is shown once.
    if (taken?.provider === server.name && taken.key === item.key) continue
    const standing = precedence.plainName(at, kind, item.key)
    const name = standing === 'lost' || taken ? itemOtherName(plain, server.name, item.key) : plain
    if (targets.has(name)) continue
    add(built[kind], section, item, name, shown)
    if (standing === 'won' && name === plain) {
      aliases.set(itemOtherName(plain, server.name, item.key), { provider: server.name, key: item.key, item })
    }
    // No model API takes a name that is written otherwise, so no item is shown under it.
    const given = `${writtenPrefix}${item.key}`
    if (given !== plain && !aliases.has(given) && written.plainName(at, kind, item.key) !== 'lost') {
      aliases.set(given, { provider: server.name, key: item.key, item })
    }
  }
}

/** Adds resources or templates under their URIs: of two servers that list the same, one provides it. */
function addLocated (
  kind: 'resources' | 'resourceTemplates',
  built: Builder,
  section: Section,
  at: number,
  catalogue: Catalogue,
  precedence: Precedence,
  isReserved: (uri: string) => boolean
): void {
  for (const item of catalogue.lists[kind]) {
    const shown = showItem(section, kind, item, false)
    if (!shown?.enabled || built[kind].targets.has(item.key) || !precedence.ownsUri(at, kind, item.key)) continue
    if (kind === 'resources' && !section.ofAdmin && isReserved(item.key)) continue
    add(built[kind], section, item, item.key, shown)
  }
}

function add (built: Builder[ListKind], section: Section, item: Item, name: string, { text, description }: SectionItem): void {
  built.targets.set(name, { provider: section.server.name, key: item.key, item })
  const entry = toEntry(text, item.key, name === item.key ? undefined : name, description)
  built.entries.push(isModernVersion(section.catalogue?.version) ? { ...entry, item, isModern: true } : { ...entry, item })
}

/** Unchanged members are absent: most entries are the text and its key alone. */
function toEntry (text: string, key: string, name: string | undefined, description: string | undefined): ListEntry {
  if (description === undefined) return name === undefined ? { text, key } : { text, name }
  return name === undefined ? { text, key, description } : { text, name, description }
}

/** The instructions of a merged route: each server's own under its name. */
function mergedInstructions (sections: readonly Section[]): string | undefined {
  let left: number = limits.mergedInstructions
  const parts = sections.flatMap(({ label, catalogue }) => {
    if (!catalogue?.instructions) return []
    const part = `# ${label}\n\n${catalogue.instructions}`
    left -= part.length
    return left >= 0 ? [part] : []
  })
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

/**
 * Whether a server's resource, listed or not, is hidden, or is another server's on this route. A URI that is too long to be normalized
 * counts as hidden.
 */
export function isHidden ({ parts, hidden, ownerOf }: Surface, server: string, uri: string): boolean {
  const isListed = parts.resources.targets.get(uri)?.provider === server
  const isServersOff = (): boolean => isListed ? isOff(hidden, server, uri) : unlistedIsOff(hidden, uri)(server)
  if (hidesAny(hidden) && (uri.length > longestUri || isServersOff())) return true
  return (ownerOf(uri) ?? server) !== server
}

/** The provider of a URI: the one that lists it, or has a template that matches it. */
export function readerOf ({ parts, templates, hidden, ownerOf }: Surface, uri: string): Target | undefined {
  const listed = parts.resources.targets.get(uri)
  if (listed || templates.length === 0 || uri.length > longestUri) return listed
  const isHiddenAt = unlistedIsOff(hidden, uri)
  // The server that listed it once may still have it, and no other one does.
  const owner = ownerOf(uri)
  const work = { left: limits.templateWork }
  const found = templates.find(({ literals, target: { provider } }) =>
    (owner ?? provider) === provider && matchesTemplate(literals, uri, work) && !isHiddenAt(provider))
  return found?.target.item && found.target
}

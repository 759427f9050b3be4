import { union, shown, type ServerCapabilities } from '../../protocol/capabilities.ts'
import { kinds, type Catalogue, type Item, type ListKind } from '../../protocol/lists.ts'
import { isEnabled, overrideOf, selects } from '../access/overrides.ts'
import { List, type Entry } from './list.ts'
import { exposedName, otherName } from './names.ts'
import { itemKindOf, showItem, type Section } from './section.ts'
import { literalsOf, longestUri, matches, type Template } from './templates.ts'

/** Where an exposed name leads: the provider that owns the item, and the item by its own name. */
export interface Target { readonly provider: string, readonly key: string, readonly item?: Item }

/** One list, and where its names lead. */
export interface Part {
  readonly list: List
  readonly targets: ReadonlyMap<string, Target>
}

/** Everything that a view sees at one generation. */
export interface Surface {
  readonly parts: Readonly<Record<ListKind, Part>>
  /** The one with the longest literals first: it is the most specific. */
  readonly templates: ReadonlyArray<Template<Target>>
  /** Resources that are disabled or not selected: no template leads to them either. */
  readonly hidden: ReadonlySet<string>
  /** The names of the providers behind it, known or not. */
  readonly providers: readonly string[]
  /** The capabilities of each provider that is known. */
  readonly capabilities: ReadonlyMap<string, ServerCapabilities>
  /** The capabilities that the route announces. */
  readonly shown: ServerCapabilities
  /** Of a single server, as JSON text; undefined: the gateway's own. */
  readonly serverInfo: string | undefined
  readonly instructions: string | undefined
}

export interface SurfaceInput {
  /** One server under its raw names and its own identity. */
  raw: boolean
  separator: string
  sections: readonly Section[]
  /** The client shows MCP Apps. */
  apps: boolean
}

type Builder = Record<ListKind, { entries: Entry[], targets: Map<string, Target>, extra: string }>

/** Folds the catalogues behind a view into what it sees. Pure; the lists of `before` that came out the same are kept. */
export function foldSurface (input: SurfaceInput, before?: Surface): Surface {
  const built: Builder = { tools: empty(), prompts: empty(), resources: empty(), resourceTemplates: empty() }
  const capabilities = new Map<string, ServerCapabilities>()
  for (const section of input.sections) {
    const { server, catalogue } = section
    if (!catalogue) continue
    capabilities.set(server.name, catalogue.capabilities)
    for (const kind of kinds) {
      if (input.raw) built[kind].extra = catalogue.extras[kind]
      addItems(kind, built, input, section, catalogue)
    }
  }
  const only = input.raw ? input.sections[0]?.catalogue : undefined
  const part = (kind: ListKind): Part => {
    const { entries, targets, extra } = built[kind]
    const list = new List(kind, entries, extra)
    const old = before?.parts[kind].list
    // A list that is the same keeps its identity, so that nobody is notified of it; its names may lead elsewhere.
    return { list: old?.equals(list) === true ? old : list, targets }
  }
  return {
    parts: { tools: part('tools'), prompts: part('prompts'), resources: part('resources'), resourceTemplates: part('resourceTemplates') },
    templates: templatesOf(built.resourceTemplates.targets, input.raw),
    hidden: hiddenOf(input.sections),
    providers: input.sections.map(({ server }) => server.name),
    capabilities,
    shown: only ? shown(only.capabilities) : union([...capabilities.values()]),
    serverInfo: only?.serverInfo,
    instructions: only ? only.instructions : mergedInstructions(input.sections)
  }
}

const empty = (): Builder[ListKind] => ({ entries: [], targets: new Map(), extra: '{}' })

function templatesOf (targets: ReadonlyMap<string, Target>, raw: boolean): Array<Template<Target>> {
  return [...targets].map(([uriTemplate, target]) => ({ literals: literalsOf(uriTemplate), target }))
    // Among several servers, one whose template fits everything must not catch the others' resources.
    .filter(({ literals }) => raw || /^[a-z][a-z0-9+.-]*:/i.test(literals[0] ?? ''))
    .sort((a, b) => b.literals.join('').length - a.literals.join('').length)
}

function addItems (kind: ListKind, built: Builder, { raw, separator, apps }: SurfaceInput, section: Section, catalogue: Catalogue): void {
  const { entries, targets } = built[kind]
  const { server, label } = section
  const qualified = !raw && (kind === 'tools' || kind === 'prompts')
  for (const item of catalogue.lists[kind]) {
    const shown = showItem(section, kind, item, apps)
    if (!shown?.enabled) continue
    let name = item.key
    if (qualified) {
      name = exposedName(label, separator, item.key)
      const taken = targets.get(name)
      // A member that a group names twice is shown once.
      if (taken?.provider === server.name && taken.key === item.key) continue
      if (taken) name = otherName(name, `${server.name}\n${item.key}`)
    }
    // Resources keep their URIs: where two servers list one, the first in configuration has it.
    if (targets.has(name)) continue
    targets.set(name, { provider: server.name, key: item.key, item })
    entries.push(toEntry(shown.text, name === item.key ? undefined : name, shown.description))
  }
}

/** Members that do not change are absent: most entries are the text alone. */
function toEntry (text: string, name: string | undefined, description: string | undefined): Entry {
  if (description === undefined) return name === undefined ? { text } : { text, name }
  return name === undefined ? { text, description } : { text, name, description }
}

/** The instructions of a merged route: each server's own under its name. */
function mergedInstructions (sections: readonly Section[]): string | undefined {
  const parts = sections.flatMap(({ label, catalogue }) => catalogue?.instructions ? [`# ${label}\n\n${catalogue.instructions}`] : [])
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

/** A server's resource, however its URI is spelled: most servers take all spellings for one. */
export const hiddenKey = (server: string, uri: string): string => keyIn(server, spelled(uri))
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`

/** Whether a server's resource, listed or not, is hidden. A URI that is too long to be normalised may be any of them. */
export const isHidden = ({ hidden }: Surface, server: string, uri: string): boolean =>
  hidden.size > 0 && (uri.length > longestUri || hidden.has(hiddenKey(server, uri)))

/** A URI in one spelling (RFC 3986 §6.2.2): without differences of case, dot segments, needless escapes and empty parts. */
function spelled (uri: string): string {
  if (!URL.canParse(uri)) return uri
  const url = new URL(uri)
  url.hash = ''
  return url.href.replace(/\?$/, '').replace(/%[0-9a-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}

function hiddenOf (sections: readonly Section[]): Set<string> {
  const hidden = new Set<string>()
  const kind = itemKindOf('resources')
  for (const { server, member, catalogue } of sections) {
    for (const uri of Object.keys(server.config[kind] ?? {})) {
      if (!isEnabled(overrideOf(server.config, kind, uri))) hidden.add(hiddenKey(server.name, uri))
    }
    for (const { key } of catalogue?.lists.resources ?? []) {
      if (!selects(member, kind, key)) hidden.add(hiddenKey(server.name, key))
    }
  }
  return hidden
}

/** Where a URI is read: at the server that listed it, or whose template it fits. */
export function readerOf ({ parts, templates, hidden }: Surface, uri: string): Target | undefined {
  const listed = parts.resources.targets.get(uri)
  if (listed || templates.length === 0 || uri.length > longestUri) return listed
  const spelling = spelled(uri)
  return templates.find(({ literals, target }) => matches(literals, uri) && !hidden.has(keyIn(target.provider, spelling)))?.target
}

import { union, shown, type ServerCapabilities } from '../../protocol/capabilities.ts'
import { kinds, type Catalogue, type Item, type ListKind } from '../../protocol/lists.ts'
import { isEnabled, overrideOf, selects } from '../access/overrides.ts'
import { List, type Entry } from './list.ts'
import { exposedName, otherName } from './names.ts'
import { itemKindOf, showItem, type Section } from './section.ts'
import { literalsOf, longestUri, matches, type Template } from './templates.ts'

/** The target of an exposed name: the provider of the item, and the item's own name. */
export interface Target { readonly provider: string, readonly key: string, readonly item?: Item }

/** One list, and the targets of its names. */
export interface Part {
  readonly list: List
  readonly targets: ReadonlyMap<string, Target>
}

/** All that a view sees at one generation. */
export interface Surface {
  readonly parts: Readonly<Record<ListKind, Part>>
  /** Those with the longest literals first: they are the most specific. */
  readonly templates: ReadonlyArray<Template<Target>>
  /** Resources that are disabled or not selected, which templates must not match either. */
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

/** Makes a view's surface of the catalogues of its providers. Pure. Lists that are equal to those of `before` are reused. */
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
    // An equal list is the same object, so that nobody is notified; the targets of its names may differ.
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
    // Among several servers, a template that matches everything must not capture the others' resources.
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
    // Resources keep their URIs: of two servers that list the same, the first in configuration provides it.
    if (targets.has(name)) continue
    targets.set(name, { provider: server.name, key: item.key, item })
    entries.push(toEntry(shown.text, name === item.key ? undefined : name, shown.description))
  }
}

/** Unchanged members are absent: most entries are the text alone. */
function toEntry (text: string, name: string | undefined, description: string | undefined): Entry {
  if (description === undefined) return name === undefined ? { text } : { text, name }
  return name === undefined ? { text, description } : { text, name, description }
}

/** The instructions of a merged route: each server's own under its name. */
function mergedInstructions (sections: readonly Section[]): string | undefined {
  const parts = sections.flatMap(({ label, catalogue }) => catalogue?.instructions ? [`# ${label}\n\n${catalogue.instructions}`] : [])
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

/** The key of a server's resource, independent of the spelling of its URI: most servers accept any equivalent spelling. */
export const hiddenKey = (server: string, uri: string): string => keyIn(server, spelled(uri))
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`

/** Whether a server's resource, listed or not, is hidden. A URI that is too long to be normalized counts as hidden. */
export const isHidden = ({ hidden }: Surface, server: string, uri: string): boolean =>
  hidden.size > 0 && (uri.length > longestUri || hidden.has(hiddenKey(server, uri)))

/** A URI in normalized spelling (RFC 3986 §6.2.2): case, dot segments, needless escapes and empty parts do not matter. */
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

/** The provider of a URI: the one that lists it, or has a template that matches it. */
export function readerOf ({ parts, templates, hidden }: Surface, uri: string): Target | undefined {
  const listed = parts.resources.targets.get(uri)
  if (listed || templates.length === 0 || uri.length > longestUri) return listed
  const spelling = spelled(uri)
  return templates.find(({ literals, target }) => matches(literals, uri) && !hidden.has(keyIn(target.provider, spelling)))?.target
}

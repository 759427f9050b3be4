import { union, shown, type ServerCapabilities } from '../../protocol/legacy/capabilities.ts'
import { kinds, type Catalogue, type ListKind } from '../upstream/catalogues/catalogue.ts'
import { withoutApps } from './apps.ts'
import { List, type Entry } from './list.ts'
import { exposedName, otherName } from './names.ts'
import { literalsOf, longestUri, matches, type Template } from './templates.ts'
import type { VisibleServer } from '../access/visibility.ts'

/** Where an exposed name leads: which server, and what the item is called there. */
export interface Target { readonly server: string, readonly key: string }

/** One list, and where its names lead. */
export interface Part {
  readonly list: List
  readonly targets: ReadonlyMap<string, Target>
}

/** All that a view sees at one generation. */
export interface Surface {
  readonly parts: Readonly<Record<ListKind, Part>>
  /** The most telling first: the one with the longest literals. */
  readonly templates: ReadonlyArray<Template<Target>>
  /** Resources that are disabled or not selected: no template leads to them either. */
  readonly hidden: ReadonlySet<string>
  /** The servers behind it, known or not. */
  readonly servers: readonly string[]
  /** What each known server can. */
  readonly capabilities: ReadonlyMap<string, ServerCapabilities>
  /** What the route says of itself. */
  readonly shown: ServerCapabilities
  /** Of a single server, as text; undefined: the gateway's own. */
  readonly serverInfo: string | undefined
  readonly instructions: string | undefined
}

export interface SurfaceInput {
  /** A route to one server: raw names, its own identity. */
  single: boolean
  separator: string
  reached: ReadonlyArray<VisibleServer & { catalogue: Catalogue | undefined }>
  /** The client shows MCP Apps. */
  apps: boolean
}

type Builder = Record<ListKind, { entries: Entry[], targets: Map<string, Target>, extra: string }>

/** Folds the catalogues behind a view into what it sees. Pure; `before` lends the parts that came out the same. */
export function foldSurface (input: SurfaceInput, before?: Surface): Surface {
  const built: Builder = { tools: empty(), prompts: empty(), resources: empty(), resourceTemplates: empty() }
  const capabilities = new Map<string, ServerCapabilities>()
  for (const reached of input.reached) {
    const { server, catalogue } = reached
    if (!catalogue) continue
    capabilities.set(server.name, catalogue.capabilities)
    for (const kind of kinds) {
      if (input.single) built[kind].extra = catalogue.extras[kind]
      addItems(kind, built, input, reached, catalogue)
    }
  }
  const only = input.single ? input.reached[0]?.catalogue : undefined
  const part = (kind: ListKind): Part => {
    const { entries, targets, extra } = built[kind]
    const list = new List(kind, entries, extra)
    const old = before?.parts[kind].list
    // What is the same keeps its identity, so that nobody is told of a change that is none; where it leads may be new.
    return { list: old?.equals(list) === true ? old : list, targets }
  }
  return {
    parts: { tools: part('tools'), prompts: part('prompts'), resources: part('resources'), resourceTemplates: part('resourceTemplates') },
    templates: [...built.resourceTemplates.targets].map(([uriTemplate, target]) => ({ literals: literalsOf(uriTemplate), target }))
      // Among several servers, one whose template fits everything must not catch what is the others'.
      .filter(({ literals }) => input.single || /^[a-z][a-z0-9+.-]*:/i.test(literals[0] ?? ''))
      .sort((a, b) => b.literals.join('').length - a.literals.join('').length),
    hidden: hiddenOf(input.reached),
    servers: input.reached.map(({ server }) => server.name),
    capabilities,
    shown: only ? shown(only.capabilities) : union([...capabilities.values()]),
    serverInfo: only?.serverInfo,
    instructions: only ? only.instructions : mergedInstructions(input.reached)
  }
}

const empty = (): Builder[ListKind] => ({ entries: [], targets: new Map(), extra: '{}' })

function addItems (
  kind: ListKind,
  built: Builder,
  { single, separator, apps }: SurfaceInput,
  { server, label, member }: VisibleServer,
  catalogue: Catalogue
): void {
  const { entries, targets } = built[kind]
  const named = kind === 'tools' || kind === 'prompts'
  const section = kind === 'resourceTemplates' ? 'resources' : kind
  const selector = member[section] ?? 'all'
  const overrides = server.config[section]
  for (const item of catalogue.lists[kind]) {
    const override = overrides !== undefined && Object.hasOwn(overrides, item.key) ? overrides[item.key] : undefined
    if (override?.enabled === false || (selector !== 'all' && !selector.includes(item.key))) continue
    const text = kind === 'tools' && !apps ? withoutApps(item.text) : item.text
    if (text === undefined) continue
    let name = item.key
    if (named && !single) {
      name = exposedName(label, separator, item.key)
      const taken = targets.get(name)
      // A member that stands there twice brings nothing twice.
      if (taken?.server === server.name && taken.key === item.key) continue
      if (taken) name = otherName(name, `${server.name}\n${item.key}`)
    }
    // Resources keep their URIs: where two servers list one, the first in configuration has it.
    if (targets.has(name)) continue
    targets.set(name, { server: server.name, key: item.key })
    const renamed = name === item.key ? {} : { name }
    entries.push(override?.description === undefined ? { text, ...renamed } : { text, ...renamed, description: override.description })
  }
}

/** What a merged route tells agents: each server's own instructions under its name. */
function mergedInstructions (reached: SurfaceInput['reached']): string | undefined {
  const sections = reached.flatMap(({ label, catalogue }) => catalogue?.instructions ? [`# ${label}\n\n${catalogue.instructions}`] : [])
  return sections.length === 0 ? undefined : sections.join('\n\n')
}

/** A server's resource, however its URI is spelled: most servers take all the spellings for one. */
export const hiddenKey = (server: string, uri: string): string => keyIn(server, spelled(uri))
const keyIn = (server: string, spelling: string): string => `${server}\n${spelling}`

/** Whether a server's resource, listed or not, is one that stays shut. What is too long to be respelled may be any. */
export const isHidden = ({ hidden }: Surface, server: string, uri: string): boolean =>
  hidden.size > 0 && (uri.length > longestUri || hidden.has(hiddenKey(server, uri)))

/** A URI in one spelling (RFC 3986 §6.2.2): case, dot segments and needless escapes make no difference, nor does what addresses nothing. */
function spelled (uri: string): string {
  if (!URL.canParse(uri)) return uri
  const url = new URL(uri)
  url.hash = ''
  return url.href.replace(/\?$/, '').replace(/%[0-9a-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}

function hiddenOf (reached: SurfaceInput['reached']): Set<string> {
  const hidden = new Set<string>()
  for (const { server, member, catalogue } of reached) {
    for (const [uri, override] of Object.entries(server.config.resources ?? {})) {
      if (override.enabled === false) hidden.add(hiddenKey(server.name, uri))
    }
    const { resources = 'all' } = member
    if (resources !== 'all') {
      for (const { key } of catalogue?.lists.resources ?? []) if (!resources.includes(key)) hidden.add(hiddenKey(server.name, key))
    }
  }
  return hidden
}

/** The server that reads a URI: the one that listed it, or whose template it fits. */
export function readerOf ({ parts, templates, hidden }: Surface, uri: string): Target | undefined {
  const listed = parts.resources.targets.get(uri)
  if (listed || templates.length === 0 || uri.length > longestUri) return listed
  const spelling = spelled(uri)
  return templates.find(({ literals, target }) => matches(literals, uri) && !hidden.has(keyIn(target.server, spelling)))?.target
}

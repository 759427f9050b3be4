import type { Snapshot } from '../../../db/store.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { describeJsonAmbiguity } from '../../../protocol/json-ambiguity.ts'
import { isObject, memberOf } from '../../../protocol/json.ts'
import type { Catalogue, Item, ListKind } from '../../../protocol/lists.ts'
import { gatewayLimits, matchesTemplate, spellingsOf, templateLiterals } from '../../gateway/index.ts'
import { toBearerKeyIdentity, type Principal, teamsOf, type View } from '../../settings/index.ts'
import { usernameOf } from '../activities/describe.ts'
import { tagsOf } from '../tags.ts'
import { KeyFacts, PrincipalFacts, toCelArguments, ItemFacts, type PolicyContext } from './cel.ts'

/** The tool, prompt or resource that a request is about. */
export interface RequestedItem {
  readonly server: string
  readonly kind: PolicyContext['tool']['kind']
  /** The item's name at its server; for a resource, its URI. */
  readonly name: string
}

/** The list that contains the items of each kind. */
const listOfKind = { tool: 'tools', prompt: 'prompts', resource: 'resources' } as const

/** Returns the kind of the items in a list, as the value of `tool.kind` in conditions. */
export const kindOfList = (kind: ListKind): RequestedItem['kind'] =>
  kind === 'tools' ? 'tool' : kind === 'prompts' ? 'prompt' : 'resource'

const kindsByMethod: ReadonlyMap<string, RequestedItem['kind']> = new Map([
  ['tools/call', 'tool'],
  ['prompts/get', 'prompt'],
  ['resources/read', 'resource'],
  ['resources/subscribe', 'resource'],
  ['skills/get', 'resource'],
  ['resources/directory/read', 'resource']
])

/** Returns the kind of the item that a request is about; undefined for requests that policies do not decide about. */
export function kindOfRequest (
  { method, params: { ref } }: Pick<Exchange, 'method' | 'params'>
): RequestedItem['kind'] | undefined {
  if (method !== 'completion/complete') return kindsByMethod.get(method)
  return isObject(ref) && ref.type === 'ref/prompt' ? 'prompt' : 'resource'
}

/** Returns a caller as conditions see it. @param address the IP address of the caller; undefined if unknown */
export function toPrincipalFacts (
  snapshot: Snapshot, principal: Principal, address: string | undefined
): PrincipalFacts {
  const { keyId = '', keyName = '' } = toBearerKeyIdentity(principal)
  return new PrincipalFacts({
    username: usernameOf(principal) ?? '',
    // A key that is limited to some servers or groups does not have the admin rights of its user.
    isAdmin: principal.isAdmin && (snapshot.keys.get(keyId)?.accessType ?? 'all') === 'all',
    teams: teamsOf(snapshot, principal),
    key: new KeyFacts(keyId, keyName),
    address: address ?? '',
    client: principal.kind === 'access-token' ? principal.credential?.name ?? '' : ''
  })
}

/**
 * Returns the path of the MCP endpoint that shows a view. For a call over plain HTTP, this is the path of the MCP
 * endpoint with the same servers.
 */
export function routePathOf ({ scope, presentation }: View): string {
  const name = scope.kind === 'global' ? '' : `/${scope.name}`
  return presentation === 'search' ? `/mcp/$smart${name}` : `/mcp${name}`
}

type ToolDetails = Pick<PolicyContext['tool'], 'annotations' | 'tags'>

/** Adds the default values that MCP defines for missing annotations ("ToolAnnotations"). */
function withDefaultAnnotations (annotations: Record<string, unknown>): Record<string, unknown> {
  const readOnlyHint = annotations.readOnlyHint ?? false
  const destructiveHint = readOnlyHint !== true
  return { readOnlyHint, destructiveHint, idempotentHint: false, openWorldHint: true, ...annotations }
}

/** The details of prompts and resources, which are only read. */
const readDetails: ToolDetails = {
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }, tags: []
}
/** The details of a tool that its server does not list. */
const noDetails: ToolDetails = { annotations: withDefaultAnnotations({}), tags: [] }

function detailsOf (kind: RequestedItem['kind'], item: Item | undefined): ToolDetails {
  if (item === undefined) return kind === 'tool' ? noDetails : readDetails
  const annotations = parseMember(item.text, 'annotations')
  return {
    annotations: kind === 'tool' ? withDefaultAnnotations(annotations) : { ...readDetails.annotations, ...annotations },
    tags: tagsOf({ _meta: parseMember(item.text, '_meta') })
  }
}

function parseMember (text: string, name: string): Record<string, unknown> {
  const value: unknown = JSON.parse(memberOf(text, name) ?? 'null')
  return isObject(value) ? value : {}
}

const factsByItem = new WeakMap<Item, ItemFacts>()

/**
 * Returns the facts about an item that conditions can read; for a listed item, from a cache.
 * @param item undefined if its server does not list it
 */
export function toItemFacts ({ server, kind, name }: RequestedItem, item: Item | undefined): ItemFacts {
  const known = item && factsByItem.get(item)
  if (known?.server === server && known.kind === kind && known.name === name) return known
  const facts = new ItemFacts({ server, kind, name, ...detailsOf(kind, item) })
  if (item !== undefined) factsByItem.set(item, facts)
  return facts
}

const itemsByKey = new WeakMap<readonly Item[], ReadonlyMap<string, Item>>()

/**
 * Finds an item in a catalogue. A resource is also found among the resource templates, by the text of the template.
 * @param catalogue undefined if unknown; then nothing is found
 */
export function findCatalogueItem (
  catalogue: Catalogue | undefined, kind: RequestedItem['kind'], name: string
): Item | undefined {
  if (catalogue === undefined) return undefined
  const { lists } = catalogue
  return indexOf(lists[listOfKind[kind]]).get(name) ??
    (kind === 'resource' ? indexOf(lists.resourceTemplates).get(name) : undefined)
}

function indexOf (items: readonly Item[]): ReadonlyMap<string, Item> {
  let index = itemsByKey.get(items)
  if (index === undefined) {
    index = new Map(items.map((item) => [item.key, item]))
    itemsByKey.set(items, index)
  }
  return index
}

const listedBySpelling = new WeakMap<readonly Item[], ReadonlyMap<string, string>>()

/**
 * Returns the names for which the policies are checked, the requested name first. If a resource is not listed under
 * exactly this URI, adds the normalized spellings of the URI, and the listed URIs that share such a spelling.
 */
export function equivalentNamesOf (catalogue: Catalogue | undefined, { kind, name }: RequestedItem): string[] {
  if (kind !== 'resource' || findCatalogueItem(catalogue, kind, name) !== undefined) return [name]
  const items = catalogue?.lists.resources ?? []
  let listed = listedBySpelling.get(items)
  if (listed === undefined) {
    listed = new Map(items.flatMap(({ key }) => spellingsOf(key).map((spelling) => [spelling, key])))
    listedBySpelling.set(items, listed)
  }
  const spellings = spellingsOf(name)
  return [...new Set([name, ...spellings, ...spellings.flatMap((spelling) => listed.get(spelling) ?? [])])]
}

/**
 * Returns the resource templates of a server that match an unlisted resource.
 * @param names the result of `equivalentNamesOf` for the resource
 */
export function templatesFor (
  catalogue: Catalogue | undefined, { kind, name }: RequestedItem, names: readonly string[]
): string[] {
  if (kind !== 'resource' || findCatalogueItem(catalogue, kind, name) !== undefined) return []
  const work = { left: gatewayLimits.templateWork }
  return (catalogue?.lists.resourceTemplates ?? []).map(({ key }) => key)
    .filter((key) => names.some((each) => matchesTemplate(templateLiterals(key), each, work)))
}

/** The variables of conditions for one call. The arguments are converted to CEL values when a condition reads them. */
export class CallPolicyContext implements PolicyContext {
  readonly principal: PolicyContext['principal']
  readonly tool: PolicyContext['tool']
  readonly route: string
  readonly now: Date
  readonly #args: unknown
  readonly #argsText: () => string
  #converted: PolicyContext['args'] | undefined
  #problem: unknown

  /** @param args the parsed arguments @param argsText returns the arguments as JSON text */
  constructor (
    { principal, tool, route, now }: Omit<PolicyContext, 'args'>, args: unknown, argsText: () => string
  ) {
    this.principal = principal
    this.tool = tool
    this.route = route
    this.now = now
    this.#args = args
    this.#argsText = argsText
  }

  /** The arguments as CEL values. @throws Error with a clause if they cannot be converted; the same error each time */
  get args (): PolicyContext['args'] {
    if (this.#problem === undefined) {
      try {
        this.#converted ??= this.#convert()
        return this.#converted
      } catch (problem) {
        this.#problem = problem
      }
    }
    throw this.#problem
  }

  #convert (): PolicyContext['args'] {
    const text = this.#argsText()
    const value = toCelArguments(this.#args, Buffer.byteLength(text))
    const ambiguity = describeJsonAmbiguity(text)
    if (ambiguity !== undefined) throw new Error(ambiguity)
    return value
  }
}

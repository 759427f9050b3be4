import { isObject } from '../../../protocol/json.ts'
import { parseInSteps } from '../../../protocol/json-builder.ts'
import { largeText } from '../../../protocol/large-message.ts'
import { kinds, nextCatalogueId, type Catalogue } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { Claims, KeptClaims } from '../../gateway/claims.ts'

/** Characters after which a piece ends: a catalogue may have many megabytes, and the event loop is not held for all of it. */
const pieceSize = 64 * 1024
/** Max nesting of a text that is read in steps. What a server sent is in strings. */
const maxDepth = 256

/** What was kept of a server. */
export interface Kept {
  /** Its catalogues were read from what is connected to now. */
  readonly isSame: boolean
  readonly catalogues: readonly Catalogue[]
  readonly claims: KeptClaims | undefined
}

/** The beginning of a text that was kept of a server of this owner. */
const headOf = (owner: string): string => `{"owner":${JSON.stringify(owner)},`
/** The same, as versions wrote it that kept no claims. */
const formerHeadOf = (target: string): string => `{"target":${JSON.stringify(target)},`

/** A server's catalogues, and its claims as far as they do not follow from these, as JSON text for the cache on disk, in pieces. */
export function * cacheText (target: string, owner: string, claims: Claims, catalogues: readonly Catalogue[]): Generator<string> {
  const { initial, items } = claims.keptBeside(catalogues)
  yield `${headOf(owner)}"target":${JSON.stringify(target)},"claims":{`
  yield initial === undefined ? '"items":{' : `"initial":${initial},"items":{`
  for (const kind of kinds) {
    yield `${kind === kinds[0] ? '' : ','}${JSON.stringify(kind)}:[`
    yield * elementsText([...items[kind]])
    yield ']'
  }
  yield '}},"catalogues":['
  for (const [at, catalogue] of catalogues.entries()) {
    if (at > 0) yield ','
    yield * catalogueText(catalogue)
  }
  yield ']}'
}

/**
 * Parses a server's cached catalogues, in steps where the text is large.
 * @returns undefined when they were cached for a server of another owner
 * @throws SyntaxError when the text is not JSON; TooDeep
 */
export async function readKept (text: string, target: string, owner: string): Promise<Kept | undefined> {
  if (!text.startsWith(headOf(owner)) && !text.startsWith(formerHeadOf(target))) return undefined
  const value = text.length > largeText ? await parseInSteps(text, maxDepth, new LoopBudget().pause) : JSON.parse(text) as unknown
  if (!isObject(value)) return undefined
  const catalogues = Array.isArray(value.catalogues) ? value.catalogues : []
  return {
    isSame: value.target === target,
    catalogues: catalogues.flatMap((catalogue) => toCatalogue(catalogue) ?? []),
    claims: toClaims(value.claims)
  }
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const isEntry = (value: unknown): value is readonly [string, number] =>
  Array.isArray(value) && typeof value[0] === 'string' && isTime(value[1])

/** Claims from a value of the cache; undefined when they are not valid. */
function toClaims (value: unknown): KeptClaims | undefined {
  if (!isObject(value) || !isObject(value.items) || !(value.initial === undefined || isTime(value.initial))) return undefined
  const { initial, items: { tools, prompts, resources, resourceTemplates } } = value
  const entriesOf = (list: unknown): Array<readonly [string, number]> => Array.isArray(list) ? list.filter(isEntry) : []
  return {
    initial,
    items: {
      tools: entriesOf(tools),
      prompts: entriesOf(prompts),
      resources: entriesOf(resources),
      resourceTemplates: entriesOf(resourceTemplates)
    }
  }
}

/** A catalogue as JSON text, in pieces. */
export function * catalogueText ({ id: _, lists, ...rest }: Catalogue): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"lists":{`
  for (const kind of kinds) {
    yield `${kind === kinds[0] ? '' : ','}${JSON.stringify(kind)}:[`
    yield * elementsText(lists[kind])
    yield ']'
  }
  yield '}}'
}

/** The elements of an array as JSON text, in pieces, without the brackets. */
function * elementsText (elements: readonly unknown[]): Generator<string> {
  let piece = ''
  for (const [at, element] of elements.entries()) {
    piece += `${at === 0 ? '' : ','}${JSON.stringify(element)}`
    if (piece.length < pieceSize) continue
    yield piece
    piece = ''
  }
  yield piece
}

const isItem = (value: unknown): boolean =>
  isObject(value) && typeof value.key === 'string' && typeof value.text === 'string' && value.text.startsWith('{')

/** A catalogue from a value of the cache; undefined when it is not a valid one. */
export function toCatalogue (value: unknown): Catalogue | undefined {
  if (!isObject(value) || !isObject(value.lists) || !isObject(value.extras) || !isObject(value.capabilities)) return undefined
  const { lists, extras } = value
  if (typeof value.serverInfo !== 'string' || typeof value.capabilityClass !== 'string') return undefined
  if (!kinds.every((kind) => Array.isArray(lists[kind]) && lists[kind].every(isItem) && typeof extras[kind] === 'string')) return undefined
  return { ...value, id: nextCatalogueId() } as unknown as Catalogue
}

import { validCapabilities } from '../../../protocol/capabilities.ts'
import { isObject } from '../../../protocol/json.ts'
import { kinds, nextCatalogueId, type Catalogue } from '../../../protocol/lists.ts'
import { LineReader } from '../../../protocol/pieces.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { Claims, KeptClaims } from '../../gateway/index.ts'

/** Max characters of a line: a catalogue may have many megabytes, and is read and written line by line. */
const lineSize = 64 * 1024
/** The last line. Without it a text is cut off. */
const end = { isWhole: true }

export interface KeptCatalogues {
  /** Its catalogues were read from the same target. */
  readonly isSame: boolean
  readonly catalogues: readonly Catalogue[]
  readonly claims: KeptClaims | undefined
}

export const configOwner = ({ owner = 'admin' }: ServerConfig): string => owner

/** Identifies the owner of lists and what they are read from: they outlive other changes of the config. */
export const sourceIdOf = ({ type, command, args, url, openapi, ...config }: ServerConfig): string =>
  sha256(JSON.stringify([type, command, args, url, openapi?.schema ?? openapi?.url, configOwner(config)]))

/** The beginning of the text of a server of this owner. */
const headOf = (owner: string): string => `{"owner":${JSON.stringify(owner)},`

/**
 * A server's catalogues, and its claims as far as they do not follow from these, as lines of JSON for the cache on
 * disk: the claims, each catalogue followed by its items, and the end.
 */
export function * cacheText (
  target: string, owner: string, claims: Claims, catalogues: readonly Catalogue[]
): Generator<string> {
  const { initial, items } = claims.keptBeside(catalogues)
  yield `${headOf(owner)}"target":${JSON.stringify(target)},"claims":{`
  yield initial === undefined ? '"items":{' : `"initial":${initial},"items":{`
  for (const kind of kinds) {
    yield `${kind === kinds[0] ? '' : ','}${JSON.stringify(kind)}:[`
    let before = ''
    for (const elements of elementsText([...items[kind]])) {
      yield `${before}${elements}`
      before = ','
    }
    yield ']'
  }
  yield '}}}\n'
  for (const { id: _, lists, ...catalogue } of catalogues) {
    yield `${JSON.stringify({ catalogue })}\n`
    for (const kind of kinds) {
      for (const elements of elementsText(lists[kind])) yield `{${JSON.stringify(kind)}:[${elements}]}\n`
    }
  }
  yield `${JSON.stringify(end)}\n`
}

/** The elements of an array as JSON text, in pieces, without brackets and without the commas between two pieces. */
function * elementsText (elements: readonly unknown[]): Generator<string> {
  let piece = ''
  for (const element of elements) {
    piece += `${piece === '' ? '' : ','}${JSON.stringify(element)}`
    if (piece.length < lineSize) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

/**
 * Parses a server's cached catalogues, without holding the event loop.
 * @param text in pieces; none at all: nothing was cached
 * @returns undefined when they were cached for a server of another owner
 * @throws SyntaxError when a line is not JSON, or the text is cut off; what reading it throws
 */
export async function readKept (
  text: AsyncIterable<string>, target: string, owner: string
): Promise<KeptCatalogues | undefined> {
  const budget = new LoopBudget()
  let head: Record<string, unknown> | undefined
  const found: unknown[] = []
  let isWhole = false
  for await (const line of linesOf(text)) {
    if (!head && !line.startsWith(headOf(owner))) return undefined
    const value = JSON.parse(line) as unknown
    await budget.pause()
    if (!isObject(value)) return undefined
    if (!head) head = value
    else if (value.isWhole === true) isWhole = true
    else if (isObject(value.catalogue)) {
      found.push({ ...value.catalogue, lists: Object.fromEntries(kinds.map((kind) => [kind, []])) })
    } else addItems(found.at(-1), value)
  }
  if (!head) return undefined
  if (!isWhole) throw new SyntaxError('it is cut off')
  return {
    isSame: head.target === target,
    catalogues: found.flatMap((catalogue) => toCatalogue(catalogue) ?? []),
    claims: toClaims(head.claims)
  }
}

/** The lines of a text, without empty ones. */
async function * linesOf (text: AsyncIterable<string>): AsyncGenerator<string> {
  const lines: string[] = []
  const reader = new LineReader(Infinity, (line) => { if (line !== '') lines.push(line) })
  for await (const piece of text) {
    reader.push(piece)
    yield * lines.splice(0)
  }
  reader.push('\n')
  yield * lines
}

/** Adds the items of a line to the catalogue before it. */
function addItems (catalogue: unknown, line: Readonly<Record<string, unknown>>): void {
  if (!isObject(catalogue) || !isObject(catalogue.lists)) return
  for (const kind of kinds) {
    const [items, list] = [line[kind], catalogue.lists[kind]]
    if (Array.isArray(items) && Array.isArray(list)) list.push(...items as unknown[])
  }
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const isEntry = (value: unknown): value is readonly [string, number] =>
  Array.isArray(value) && typeof value[0] === 'string' && isTime(value[1])

/** Claims of the cache; undefined when they are not valid. */
function toClaims (value: unknown): KeptClaims | undefined {
  if (!isObject(value) || !isObject(value.items) || !(value.initial === undefined || isTime(value.initial))) {
    return undefined
  }
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

const isItem = (value: unknown): boolean =>
  isObject(value) && typeof value.key === 'string' && typeof value.text === 'string' && value.text.startsWith('{')

/** A catalogue of the cache; undefined when it is not valid. */
export function toCatalogue (value: unknown): Catalogue | undefined {
  if (!isObject(value) || !isObject(value.lists) || !isObject(value.extras) || !isObject(value.capabilities)) {
    return undefined
  }
  const { lists, extras } = value
  if (typeof value.serverInfo !== 'string' || typeof value.capabilityClass !== 'string') return undefined
  if (!kinds.every((kind) =>
    Array.isArray(lists[kind]) && lists[kind].every(isItem) && typeof extras[kind] === 'string')) return undefined
  const { capabilities } = validCapabilities(value.capabilities)
  return { ...value, capabilities, id: nextCatalogueId() } as unknown as Catalogue
}

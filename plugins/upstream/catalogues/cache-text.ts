import { removeInvalidCapabilities } from '../../../protocol/capabilities.ts'
import { isObject } from '../../../protocol/json.ts'
import { allListKinds, byListKind, nextCatalogueId, type Catalogue } from '../../../protocol/lists.ts'
import { LineReader } from '../../../protocol/pieces.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { ItemClaims, StoredItemClaims } from '../../gateway/index.ts'

/** Length of a piece of cached text after which the next piece begins, in characters. */
const lineSize = 64 * 1024
/** The last line of a cached text: a text without it is truncated. */
const endLine = { isWhole: true }

/** The cached catalogues of a server, and the times at which its items were first listed ("claims"). */
export interface CachedCatalogues {
  /** Whether the catalogues were read from the current source (`catalogueSourceIdOf`). */
  readonly isSameSource: boolean
  readonly catalogues: readonly Catalogue[]
  readonly claims: StoredItemClaims | undefined
}

/** Returns the username of a server's owner. */
export const configOwner = ({ owner = 'admin' }: ServerConfig): string => owner

/**
 * Returns a hash that identifies the source of a server's lists: its owner, and the command, address or OpenAPI
 * description from which they are read. If it stays the same, a changed config keeps the lists.
 */
export const catalogueSourceIdOf = ({ type, command, args, url, openapi, ...config }: ServerConfig): string =>
  sha256(JSON.stringify([type, command, args, url, openapi?.schema ?? openapi?.url, configOwner(config)]))

/** Returns the text with which the cached text of each server of an owner begins. */
const ownerPrefix = (owner: string): string => `{"owner":${JSON.stringify(owner)},`

/**
 * Serializes a server's catalogues for the cache on disk, as lines of JSON: the claims (when each item was first
 * listed) that cannot be derived from the catalogues, then each catalogue followed by its items, then the end line.
 */
export function * toCacheText (
  sourceId: string, owner: string, claims: ItemClaims, catalogues: readonly Catalogue[]
): Generator<string> {
  const { initial, items } = claims.claimsToStore(catalogues)
  yield `${ownerPrefix(owner)}"target":${JSON.stringify(sourceId)},"claims":{`
  yield initial === undefined ? '"items":{' : `"initial":${initial},"items":{`
  for (const kind of allListKinds) {
    yield `${kind === allListKinds[0] ? '' : ','}${JSON.stringify(kind)}:[`
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
    for (const kind of allListKinds) {
      for (const elements of elementsText(lists[kind])) yield `{${JSON.stringify(kind)}:[${elements}]}\n`
    }
  }
  yield `${JSON.stringify(endLine)}\n`
}

/** Returns the elements of an array as JSON text, in pieces, without brackets and without commas between pieces. */
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
 * Parses a server's cached catalogues without blocking the event loop.
 * @param text the cached text, in pieces; empty if nothing was cached
 * @param sourceId the server's `catalogueSourceIdOf`
 * @returns undefined if nothing was cached, or it was cached for a server of another owner
 * @throws SyntaxError if a line is not JSON or the text is truncated; errors from reading the text
 */
export async function parseCacheText (
  text: AsyncIterable<string>, sourceId: string, owner: string
): Promise<CachedCatalogues | undefined> {
  const budget = new LoopBudget()
  let head: Record<string, unknown> | undefined
  const found: unknown[] = []
  let isWhole = false
  for await (const line of linesOf(text)) {
    if (!head && !line.startsWith(ownerPrefix(owner))) return undefined
    const value = JSON.parse(line) as unknown
    await budget.pause()
    if (!isObject(value)) return undefined
    if (!head) head = value
    else if (value.isWhole === true) isWhole = true
    else if (isObject(value.catalogue)) {
      // A cache of an earlier version lacks the list kinds that were added later.
      const extras = { ...byListKind(() => '{}'), ...isObject(value.catalogue.extras) && value.catalogue.extras }
      found.push({ ...value.catalogue, lists: byListKind(() => []), extras })
    } else addItems(found.at(-1), value)
  }
  if (!head) return undefined
  if (!isWhole) throw new SyntaxError('it is cut off')
  return {
    isSameSource: head.target === sourceId,
    catalogues: found.flatMap((catalogue) => toCatalogue(catalogue) ?? []),
    claims: toClaims(head.claims)
  }
}

/** Returns the lines of a text, without empty lines. */
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

function addItems (catalogue: unknown, line: Readonly<Record<string, unknown>>): void {
  if (!isObject(catalogue) || !isObject(catalogue.lists)) return
  for (const kind of allListKinds) {
    const [items, list] = [line[kind], catalogue.lists[kind]]
    if (Array.isArray(items) && Array.isArray(list)) list.push(...items as unknown[])
  }
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const isEntry = (value: unknown): value is readonly [string, number] =>
  Array.isArray(value) && typeof value[0] === 'string' && isTime(value[1])

/**
 * Validates cached claims, the times at which items were first listed. Invalid entries are omitted.
 * @returns undefined if the value as a whole is invalid
 */
function toClaims (value: unknown): StoredItemClaims | undefined {
  if (!isObject(value) || !isObject(value.items) || !(value.initial === undefined || isTime(value.initial))) {
    return undefined
  }
  const { initial, items } = value
  const entriesOf = (list: unknown): Array<readonly [string, number]> => Array.isArray(list) ? list.filter(isEntry) : []
  return {
    initial,
    items: byListKind((kind) => entriesOf(items[kind]))
  }
}

const isItem = (value: unknown): boolean =>
  isObject(value) && typeof value.key === 'string' && typeof value.text === 'string' && value.text.startsWith('{')

/** Validates a cached catalogue, and gives it a new id. @returns undefined if it is invalid */
export function toCatalogue (value: unknown): Catalogue | undefined {
  if (!isObject(value) || !isObject(value.lists) || !isObject(value.extras) || !isObject(value.capabilities)) {
    return undefined
  }
  const { lists, extras } = value
  if (typeof value.serverInfo !== 'string' || typeof value.capabilityClass !== 'string') return undefined
  // `extras` of a list kind may be missing: earlier versions of the gateway had fewer kinds.
  if (!allListKinds.every((kind) => Array.isArray(lists[kind]) && lists[kind].every(isItem) &&
    typeof (extras[kind] ?? '') === 'string')) return undefined
  const { capabilities } = removeInvalidCapabilities(value.capabilities)
  const kept = byListKind((kind) => extras[kind] ?? '{}')
  return { ...value, extras: kept, capabilities, id: nextCatalogueId() } as unknown as Catalogue
}

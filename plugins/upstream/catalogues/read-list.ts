import { cachingOf, combineCaching, type Caching } from '../../../protocol/caching.ts'
import { RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { eachElement, membersOf, withMembers } from '../../../protocol/json.ts'
import { listKinds, type Item, type ListKind } from '../../../protocol/lists.ts'
import { listResultShape } from '../../../protocol/message-shapes.ts'
import { indexedObjectToList, mend } from '../../../protocol/mending.ts'
import { detachedCopy, truncate, memoryOf } from '../../../protocol/text.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { toItem } from './to-item.ts'
import { upstreamLimits } from '../limits.ts'

/** One list of an upstream, as far as it was read. */
export interface ListRead {
  readonly items: Item[]
  /** The first page's result without the items, the cursor and the caching hints, as the JSON text of an object. */
  readonly extra: string
  /** How long, and for whom, the list may be cached; undefined if the server does not state it. */
  readonly caching: Caching | undefined
  /** The reason why the later pages of the list are missing. */
  readonly failure?: string
}

/**
 * Reads all pages of one list of an upstream. If a later page fails, the items of the earlier ones are returned.
 * @param request sends a request to the upstream; resolves to the result, as JSON text
 * @param warn called with sentences about omitted and corrected items
 * @param maxSize max memory of the items, in bytes; `upstreamLimits.listSize` if that is less
 * @param known items that are kept in memory: those that are listed again are reused
 * @throws RpcError, UpstreamError if the first page cannot be read
 */
export async function readList (
  kind: ListKind,
  request: (method: string, params: string) => Promise<string>,
  warn: (sentence: string) => void,
  maxSize = Infinity,
  known: readonly Item[] = []
): Promise<ListRead> {
  const max = Math.max(0, Math.min(maxSize, upstreamLimits.listSize))
  return await new ListReader(kind, request, warn, max, known).read()
}

class ListReader {
  readonly #kind: ListKind
  readonly #request: (method: string, params: string) => Promise<string>
  readonly #warn: (sentence: string) => void
  readonly #maxSize: number
  readonly #known: ReadonlyMap<string, Item>
  readonly #items: Item[] = []
  readonly #seen = new Set<string>()
  #size = 0
  /** Whether a limit is reached, so that all further items are omitted. */
  #isFull = false
  #repeatedPages = 0
  #mended = 0
  #firstMended = ''

  constructor (
    kind: ListKind,
    request: (method: string, params: string) => Promise<string>,
    warn: (sentence: string) => void,
    maxSize: number,
    known: readonly Item[]
  ) {
    this.#kind = kind
    this.#known = new Map(known.map((item) => [item.key, item]))
    this.#request = request
    this.#warn = (sentence) => { warn(`${kind}: ${sentence}`) }
    this.#maxSize = maxSize
  }

  async read (): Promise<ListRead> {
    const list = await this.#readPages()
    if (this.#repeatedPages > 0) this.#warn(`${this.#repeatedPages} of its pages repeat items of earlier pages`)
    const others = this.#mended > 1 ? ` and in ${this.#mended - 1} more items` : ''
    if (this.#mended > 0) this.#warn(`null, or [] for an object, is treated as absent in ${this.#firstMended}${others}`)
    return list
  }

  async #readPages (): Promise<ListRead> {
    const { method } = listKinds[this.#kind]
    const items = this.#items
    const cursors = new Set<string>()
    let extra = '{}'
    let cursor: string | undefined
    let caching: Caching | undefined
    for (let page = 0; ; page++) {
      let result: string
      try {
        result = await this.#request(method, cursor === undefined ? '{}' : `{"cursor":${cursor}}`)
      } catch (error) {
        if (page === 0 || !(error instanceof RpcError || error instanceof UpstreamError)) throw error
        // Some servers send an empty cursor with the last page, but return an error for a request with that cursor.
        if (cursor === '""' && error instanceof RpcError) return { items, extra, caching }
        this.#warn(
          `page ${page + 1} and those after it could not be read, so their items are missing: ${error.message}`
        )
        return { items, extra, caching, failure: error.message }
      }
      const budget = new LoopBudget()
      const { list, next, rest, problem } = pagePartsOf(result, this.#kind)
      if (problem !== undefined) this.#warn(`${page === 0 ? '' : `page ${page + 1}: `}${problem}`)
      if (budget.isSpent) await budget.yieldToEventLoop()
      // Caching hints may differ with each reading, so they are not part of `extra`.
      if (page === 0) extra = detachedCopy(withMembers(rest, { ttlMs: undefined, cacheScope: undefined }))
      caching = page === 0 ? cachingOf(rest) : combineCaching(caching, cachingOf(rest))
      if (extra.length > upstreamLimits.itemSize) {
        this.#warn(
          `the other members of the result are larger than ${upstreamLimits.itemSize} characters and were omitted`
        )
        extra = '{}'
      }
      if (budget.isSpent) await budget.yieldToEventLoop()
      const first = items.length
      const size = await this.#take(list, budget, page)
      if (this.#isFull || size < result.length / 2) this.#detach(first)
      if (this.#isFull || next === undefined || next === 'null') return { items, extra, caching }
      if (cursors.has(next)) {
        this.#repeatedPages = 0
        this.#warn('its cursors form a loop; only the items up to there are included')
        return { items, extra, caching }
      }
      cursors.add(next)
      if (page + 1 >= upstreamLimits.listPages) {
        this.#warn(`only the first ${upstreamLimits.listPages} pages are read`)
        return { items, extra, caching }
      }
      cursor = next
    }
  }

  /** Takes the items of a page. @returns the size of those that were not known, in bytes of memory */
  async #take (list: string, budget: LoopBudget, page: number): Promise<number> {
    let size = 0
    const remarks = {
      warn: (sentence: string) => { this.#warn(sentence) },
      mended: (name: string, place: string) => {
        if (this.#mended++ === 0) {
          this.#firstMended = `${JSON.stringify(truncate(name, 200))} (${JSON.stringify(place)})`
        }
      }
    }
    const repeated: string[] = []
    const before = this.#items.length
    for (const text of eachElement(list)) {
      if (budget.isSpent) await budget.yieldToEventLoop()
      const item = toItem(text, this.#kind, remarks)
      if (item === undefined) continue
      if (this.#seen.has(item.key)) {
        repeated.push(item.key)
        continue
      }
      const reason = this.#overflow(item)
      if (reason !== undefined) {
        this.#warn(reason)
        this.#isFull = true
        break
      }
      this.#seen.add(item.key)
      const known = this.#known.get(item.key)
      const isKnown = known?.text === item.text
      if (!isKnown) size += memoryOf(item.text)
      this.#items.push(isKnown ? known : item)
    }
    if (page > 0 && repeated.length > 1 && this.#items.length === before) this.#repeatedPages++
    else {
      for (const key of repeated) {
        this.#warn(`${JSON.stringify(truncate(key, 200))} is listed twice; the first one is used`)
      }
    }
    return size
  }

  /**
   * Replaces the texts of the items of a page (from index `first` on) by copies, if much of the page is not kept: as
   * substrings, they would keep the whole page in memory.
   */
  #detach (first: number): void {
    for (let at = first; at < this.#items.length; at++) {
      const item = this.#items[at]
      if (item && this.#known.get(item.key) !== item) {
        this.#items[at] = { key: item.key, text: detachedCopy(item.text) }
      }
    }
  }

  /**
   * Counts an item.
   * @returns the reason why it and all further items are omitted; undefined if it is within the limits
   */
  #overflow ({ text }: Item): string | undefined {
    if (this.#items.length >= upstreamLimits.listItems) return `only the first ${upstreamLimits.listItems} are included`
    this.#size += memoryOf(text)
    return this.#size > this.#maxSize ? `only the items within ${this.#maxSize} bytes are included` : undefined
  }
}

/** The parts of one page of a list, as JSON texts. */
interface PageParts {
  /** The array of items. */
  readonly list: string
  /** The value of `nextCursor`. */
  readonly next: string | undefined
  /** An object with all members of the result except the list and `nextCursor`. */
  readonly rest: string
  /** The problem, as a clause, if the server did not send the list as an array. */
  readonly problem: string | undefined
}

/** Finds the parts of a page in one pass, since a page may be several megabytes long. */
function pagePartsOf (result: string, kind: ListKind): PageParts {
  let written: string | undefined
  let next: string | undefined
  const rest: string[] = []
  for (const { key, keyStart, start, end } of membersOf(result)) {
    if (key === kind) written = result.slice(start, end)
    else if (key === 'nextCursor') next = result.slice(start, end)
    else rest.push(result.slice(keyStart, end))
  }
  return { ...toList(written, kind), next, rest: mend(`{${rest.join()}}`, listResultShape).text }
}

/** Returns the array of a list's items, and the problem if the server did not send an array. */
function toList (written: string | undefined, kind: ListKind): Pick<PageParts, 'list' | 'problem'> {
  if (written?.startsWith('[') === true) return { list: written, problem: undefined }
  const list = written === undefined ? undefined : indexedObjectToList(written)
  if (list !== undefined) {
    return {
      list, problem: `"${kind}" is an object with numeric keys, as PHP writes some lists, and is treated as a list`
    }
  }
  const what = written === undefined ? 'is missing' : `is not a list, but ${truncate(written, 100)}`
  return { list: '[]', problem: `"${kind}" ${what}, and is treated as an empty list` }
}

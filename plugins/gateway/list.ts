import { createHash } from 'node:crypto'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import { memberOf, withMembers } from '../../protocol/json.ts'
import { listKinds, type Item, type ListKind } from '../../protocol/lists.ts'
import { largeTextLength } from '../../protocol/text.ts'
import { toBytes } from '../../protocol/yield.ts'
import { Semaphore } from '../base/limits/index.ts'
import { gatewayLimits } from './limits.ts'

/** An item as a view shows it: the JSON text that its server lists, and the members that differ from it. */
export interface ListEntry {
  readonly text: string
  readonly name?: string
  readonly description?: string
  /** The name or URI in `text`, unless `name` replaces it. */
  readonly key?: string
  /** The item as its server lists it, for adapters that convert it for their clients. */
  readonly item?: Item
  /** Whether the connection to its server uses MCP 2026-07-28 or later. */
  readonly isModern?: boolean
}

/** The result of a list request. It is serialized when it is first sent. */
export class ListResult {
  readonly kind: ListKind
  readonly entries: readonly ListEntry[]
  /** A weak reference to this list, shared by all who remember the list. */
  readonly ref = new WeakRef<ListResult>(this)
  readonly #extra: string
  #serializing: Promise<Buffer> | undefined
  /** The serialized list, kept as long as a response uses it. */
  #serialized: WeakRef<Buffer> | undefined
  /** The index of the first entry of each page. */
  #starts: readonly number[] | undefined
  /** The index after each item, by the item's hash. Built when a cursor does not match the list. */
  #indexAfterItem: ReadonlyMap<string, number> | undefined
  readonly #pages = new Map<number, ListResult>()

  /** @param extra the other members of the result, as the text of an object */
  constructor (kind: ListKind, entries: readonly ListEntry[], extra: string) {
    this.kind = kind
    this.entries = entries
    this.#extra = extra
  }

  /** The other members of the result, as the text of an object. */
  get extra (): string { return this.#extra }

  /** Copies the list with other members beside its entries. */
  withExtra (extra: string): ListResult { return new ListResult(this.kind, this.entries, extra) }

  /** Copies the list with other entries. */
  withEntries (entries: readonly ListEntry[]): ListResult {
    return new ListResult(this.kind, entries, this.#extra)
  }

  /** Whether clients see the two lists as equal. */
  equals (other: ListResult): boolean {
    return this.kind === other.kind && this.#extra === other.#extra && this.entries.length === other.entries.length &&
      this.entries.every(({ text, name, description }, at) => {
        const same = other.entries[at]
        return same !== undefined && name === same.name && description === same.description && text === same.text
      })
  }

  /**
   * Returns the page at a cursor; this list if it has a single page.
   * @param cursor the `nextCursor` of the previous page; undefined, null or empty: the first page. A cursor
   *   identifies the last item of that page, so it is valid on every replica as long as the item is listed
   * @throws RpcError for an invalid cursor
   */
  page (cursor: unknown): ListResult {
    const starts = this.#starts ??= this.#pageStarts()
    const at = (cursor ?? '') === '' ? 0 : this.#indexAfter(cursor)
    if (at === 0 && starts.length === 1) return this
    const known = this.#pages.get(at)
    if (known) return known
    const end = this.#endOfPage(at)
    const last = this.entries[end - 1]
    const nextCursor = end < this.entries.length && last
      ? JSON.stringify(`${end}.${hashOf(this.#nameOf(last))}`)
      : undefined
    const page = new ListResult(this.kind, this.entries.slice(at, end), withMembers(this.#extra, { nextCursor }))
    // Pages at other cursors, which clients may forge, are not cached.
    if (starts.includes(at)) this.#pages.set(at, page)
    return page
  }

  #pageStarts (): number[] {
    const starts = [0]
    for (let end = this.#endOfPage(0); end < this.entries.length; end = this.#endOfPage(end)) starts.push(end)
    return starts
  }

  /** The end of the page that starts at an entry. A page has at least one entry. */
  #endOfPage (start: number): number {
    let size = 0
    for (let at = start; at < this.entries.length; at++) {
      const { text = '', description = '' } = this.entries[at] ?? {}
      size += text.length + description.length
      if (size > gatewayLimits.listPage && at > start) return at
    }
    return this.entries.length
  }

  #nameOf ({ name, key, text }: ListEntry): string {
    const own = listKinds[this.kind].key
    return name ?? key ?? (JSON.parse(memberOf(text, own) ?? '""') as string)
  }

  /** The index of the first entry after a cursor. @throws RpcError */
  #indexAfter (cursor: unknown): number {
    const [, end, hash] = (typeof cursor === 'string' ? /^([1-9]\d{0,8})\.([\w-]{22})$/.exec(cursor) : undefined) ?? []
    const expected = Number(end)
    const last = this.entries[expected - 1]
    if (last && hashOf(this.#nameOf(last)) === hash) return expected
    // The list has changed since the previous page.
    this.#indexAfterItem ??= new Map(this.entries.map((entry, at) => [hashOf(this.#nameOf(entry)), at + 1]))
    const at = this.#indexAfterItem.get(hash ?? '')
    if (at === undefined) throw new RpcError(rpcCode.invalidParams, 'Invalid cursor: start with the first page')
    return at
  }

  /**
   * The list as JSON, in UTF-8. It is serialized once for concurrent callers, and cached (`gatewayLimits.keptLists`).
   * Large lists are serialized one at a time.
   * @param owner the owner of the request: owners take turns
   */
  bytes (owner?: string): Promise<Buffer> {
    const known = serializedLists.get(this) ?? this.#serialized?.deref()
    if (known) return Promise.resolve(known)
    this.#serializing ??= this.#serialize(owner).finally(() => { this.#serializing = undefined })
    return this.#serializing
  }

  async #serialize (owner: string | undefined): Promise<Buffer> {
    const isLarge = this.entries.reduce((sum, { text }) => sum + text.length, 0) > largeTextLength
    const release = isLarge ? await largeListSlots.take(owner) : undefined
    try {
      const bytes = await toBytes(this.#pieces())
      this.#serialized = new WeakRef(bytes)
      serializedSize += bytes.length
      if (serializedSize > gatewayLimits.keptLists) {
        serializedLists = new WeakMap()
        serializedSize = bytes.length
      }
      serializedLists.set(this, bytes)
      return bytes
    } finally {
      release?.()
    }
  }

  * #pieces (): Generator<string> {
    const rest = withMembers(this.#extra, { [this.kind]: undefined }).slice(0, -1)
    yield `${rest}${rest === '{' ? '' : ','}${JSON.stringify(this.kind)}:[`
    let between = ''
    for (const entry of this.entries) {
      yield `${between}${itemText(entry, listKinds[this.kind].key)}`
      between = ','
    }
    yield ']}'
  }
}

/** Large lists are serialized one at a time, since each takes a multiple of its size in memory. */
const largeListSlots = new Semaphore({ places: 1 })
/** Cache of serialized lists. */
let serializedLists = new WeakMap<ListResult, Buffer>()
/** The total size of lists serialized since the cache was last cleared, in bytes. */
let serializedSize = 0

/** A hash that identifies an item within its list. */
const hashOf = (name: string): string => createHash('sha256').update(name).digest('base64url').slice(0, 22)

/** The JSON text of an item as a view sees it. @param key the member that identifies it */
export function itemText ({ text, name, description }: ListEntry, key: string): string {
  if (name === undefined && description === undefined) return text
  const changes: Record<string, string> = {}
  if (name !== undefined) changes[key] = JSON.stringify(name)
  if (description !== undefined) changes.description = JSON.stringify(description)
  return withMembers(text, changes)
}

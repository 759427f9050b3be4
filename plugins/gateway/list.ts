import { createHash } from 'node:crypto'
import { code, RpcError } from '../../protocol/errors.ts'
import { memberOf, withMembers } from '../../protocol/json.ts'
import { listKinds, type Item, type ListKind } from '../../protocol/lists.ts'
import { largeText } from '../../protocol/text.ts'
import { toBytes } from '../../protocol/yield.ts'
import { Semaphore } from '../base/limits/index.ts'
import { gatewayLimits } from './limits.ts'

/** One item as a view sees it: its JSON text as listed, and the changed members. */
export interface ListEntry {
  readonly text: string
  readonly name?: string
  readonly description?: string
  /** The item's own name or URI, if `name` does not replace it. */
  readonly key?: string
  /** The listed item, which adapters may have to change for their clients. */
  readonly item?: Item
  /** True if its server is of the modern era. */
  readonly isModern?: boolean
}

/** The result of one list request. It is serialized on first use. */
export class List {
  readonly kind: ListKind
  readonly entries: readonly ListEntry[]
  readonly #extra: string
  #writing: Promise<Buffer> | undefined
  /** The bytes, as long as a reply holds them. */
  #sent: WeakRef<Buffer> | undefined
  /** The index of each page's first entry. */
  #starts: readonly number[] | undefined
  /** The index after each item, by its hash. Made for a cursor of a former list. */
  #ends: ReadonlyMap<string, number> | undefined
  readonly #pages = new Map<number, List>()
  #ref: WeakRef<List> | undefined

  /** @param extra the other members of the result, as the text of an object */
  constructor (kind: ListKind, entries: readonly ListEntry[], extra: string) {
    this.kind = kind
    this.entries = entries
    this.#extra = extra
  }

  /** A weak reference, one for all who remember the list. */
  get ref (): WeakRef<List> { return this.#ref ??= new WeakRef(this) }

  /** The other members of the result, as the text of an object. */
  get extra (): string { return this.#extra }

  /** The same list with other members beside its entries. */
  withExtra (extra: string): List { return new List(this.kind, this.entries, extra) }

  /** The same list with other entries. */
  with (entries: readonly ListEntry[]): List {
    return new List(this.kind, entries, this.#extra)
  }

  /** True if clients see no difference. */
  equals (other: List): boolean {
    return this.kind === other.kind && this.#extra === other.#extra && this.entries.length === other.entries.length &&
      this.entries.every(({ text, name, description }, at) => {
        const same = other.entries[at]
        return same !== undefined && name === same.name && description === same.description && text === same.text
      })
  }

  /**
   * The page that a cursor leads to: this list where it has a single page.
   * @param cursor the `nextCursor` of the page before; undefined, null or empty: the first page. It names the last item
   *   of that page, so it is good for as long as that is listed, on every replica
   * @throws RpcError for a cursor that leads nowhere
   */
  page (cursor: unknown): List {
    const starts = this.#starts ??= this.#pageStarts()
    const at = (cursor ?? '') === '' ? 0 : this.#after(cursor)
    if (at === 0 && starts.length === 1) return this
    const known = this.#pages.get(at)
    if (known) return known
    const end = this.#endOfPage(at)
    const last = this.entries[end - 1]
    const nextCursor = end < this.entries.length &&
      last
      ? JSON.stringify(`${end}.${hashOf(this.#nameOf(last))}`)
      : undefined
    const page = new List(this.kind, this.entries.slice(at, end), withMembers(this.#extra, { nextCursor }))
    // Pages of forged cursors, or of a former list, are not kept.
    if (starts.includes(at)) this.#pages.set(at, page)
    return page
  }

  #pageStarts (): number[] {
    const starts = [0]
    for (let end = this.#endOfPage(0); end < this.entries.length; end = this.#endOfPage(end)) starts.push(end)
    return starts
  }

  /** The end of the page that begins at an item. A page has at least one item. */
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

  /** @throws RpcError */
  #after (cursor: unknown): number {
    const [, end, hash] = (typeof cursor === 'string' ? /^([1-9]\d{0,8})\.([\w-]{22})$/.exec(cursor) : undefined) ?? []
    const expected = Number(end)
    const last = this.entries[expected - 1]
    if (last && hashOf(this.#nameOf(last)) === hash) return expected
    // The list has changed since.
    this.#ends ??= new Map(this.entries.map((entry, at) => [hashOf(this.#nameOf(entry)), at + 1]))
    const at = this.#ends.get(hash ?? '')
    if (at === undefined) throw new RpcError(code.invalidParams, 'Invalid cursor: begin with the first page')
    return at
  }

  /**
   * Its JSON as UTF-8, written once for concurrent callers, and kept while there is room. Large lists are written one
   * at a time.
   * @param owner the owner of the request; owners take turns
   */
  bytes (owner?: string): Promise<Buffer> {
    const kept = texts.get(this) ?? this.#sent?.deref()
    if (kept) return Promise.resolve(kept)
    this.#writing ??= this.#write(owner).finally(() => { this.#writing = undefined })
    return this.#writing
  }

  async #write (owner: string | undefined): Promise<Buffer> {
    const isLarge = this.entries.reduce((sum, { text }) => sum + text.length, 0) > largeText
    const release = isLarge ? await places.take(owner) : undefined
    try {
      const bytes = await toBytes(this.#pieces())
      this.#sent = new WeakRef(bytes)
      textsSize += bytes.length
      if (textsSize > gatewayLimits.keptLists) {
        texts = new WeakMap()
        textsSize = bytes.length
      }
      texts.set(this, bytes)
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

/** Large lists are written one at a time, since each needs a multiple of its size. */
const places = new Semaphore({ places: 1 })
/** The serialized lists. */
let texts = new WeakMap<List, Buffer>()
/** The size of all serialized lists since the last reset, in bytes. */
let textsSize = 0

/** Identifies an item within its list. */
const hashOf = (name: string): string => createHash('sha256').update(name).digest('base64url').slice(0, 22)

/** The text of an item as a view sees it. @param key the member that identifies it */
export function itemText ({ text, name, description }: ListEntry, key: string): string {
  if (name === undefined && description === undefined) return text
  const changes: Record<string, string> = {}
  if (name !== undefined) changes[key] = JSON.stringify(name)
  if (description !== undefined) changes.description = JSON.stringify(description)
  return withMembers(text, changes)
}

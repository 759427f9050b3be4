import { createHash } from 'node:crypto'
import { code, RpcError } from '../../protocol/errors.ts'
import { memberOf, withMembers } from '../../protocol/json.ts'
import { listKinds, type Item, type ListKind } from '../../protocol/lists.ts'
import { largeText } from '../../protocol/text.ts'
import { toBytes } from '../../protocol/yield.ts'
import { limits, Semaphore } from '../base/limits/index.ts'

/** One item as a view sees it: its JSON text as it was listed, and the members that get another value. */
export interface ListEntry {
  readonly text: string
  readonly name?: string
  readonly description?: string
  /** What identifies it, where it has no other name: to be found without reading the text. */
  readonly key?: string
  /** The item that was listed: clients of earlier revisions may not be able to read it as it is. */
  readonly item?: Item
  /** Its server is of the modern era. */
  readonly isModern?: boolean
}

/** The result of one list request. It is serialized on first use, since it may have megabytes and most sessions never ask for it. */
export class List {
  readonly kind: ListKind
  readonly entries: readonly ListEntry[]
  readonly #extra: string
  #writing: Promise<Buffer> | undefined
  /** For as long as a reply holds it. */
  #sent: WeakRef<Buffer> | undefined
  /** Where its pages begin. */
  #starts: readonly number[] | undefined
  /** Where each item ends, by its hash; made when a cursor is that of a list before. */
  #ends: ReadonlyMap<string, number> | undefined
  readonly #pages = new Map<number, List>()

  /** @param extra the other members of the result, as the text of an object */
  constructor (kind: ListKind, entries: readonly ListEntry[], extra: string) {
    this.kind = kind
    this.entries = entries
    this.#extra = extra
  }

  /** The other members of the result, as the text of an object. */
  get extra (): string { return this.#extra }

  /** The same list with other members beside its entries. */
  withExtra (extra: string): List { return new List(this.kind, this.entries, extra) }

  /** The same list with other entries. */
  with (entries: readonly ListEntry[]): List {
    return new List(this.kind, entries, this.#extra)
  }

  /** True when both are equal to a client. */
  equals (other: List): boolean {
    return this.kind === other.kind && this.#extra === other.#extra && this.entries.length === other.entries.length &&
      this.entries.every(({ text, name, description }, at) => {
        const same = other.entries[at]
        return same !== undefined && name === same.name && description === same.description && text === same.text
      })
  }

  /**
   * The page that a cursor leads to: this list where it has a single page.
   * @param cursor the `nextCursor` of the page before; undefined, null or empty: the first page. It names the last item of that
   * page, so it is good for as long as that is listed, on every replica
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
    const nextCursor = end < this.entries.length && last ? JSON.stringify(`${end}.${hashOf(this.#nameOf(last))}`) : undefined
    const page = new List(this.kind, this.entries.slice(at, end), withMembers(this.#extra, { nextCursor }))
    // Others are those of a list that has changed, or of cursors that nobody got.
    if (starts.includes(at)) this.#pages.set(at, page)
    return page
  }

  #pageStarts (): number[] {
    const starts = [0]
    for (let end = this.#endOfPage(0); end < this.entries.length; end = this.#endOfPage(end)) starts.push(end)
    return starts
  }

  /** Where the page that begins at an item ends. It has one item at least. */
  #endOfPage (start: number): number {
    let size = 0
    for (let at = start; at < this.entries.length; at++) {
      const { text = '', description = '' } = this.entries[at] ?? {}
      size += text.length + description.length
      if (size > limits.listPage && at > start) return at
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
   * Its JSON as UTF-8, written once for all who want it at the same time, and kept while there is room. Large ones are written one after
   * the other.
   * @param owner who wants it; owners take turns
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
      if (textsSize > limits.keptLists) {
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

/** Large lists are written one after the other, since each takes some times its size meanwhile. */
const places = new Semaphore({ places: 1 })
/** The lists that are kept as they are sent. */
let texts = new WeakMap<List, Buffer>()
/** In bytes, those of lists that are gone included. */
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

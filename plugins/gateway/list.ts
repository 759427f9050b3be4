import { withMembers } from '../../protocol/json.ts'
import { listKinds, type Item, type ListKind } from '../../protocol/lists.ts'
import { toBytes } from '../../protocol/yield.ts'

/** One item as a view sees it: its JSON text as it was listed, and the members that get another value. */
export interface Entry {
  readonly text: string
  readonly name?: string
  readonly description?: string
  /** The item that was listed, where its server is of the modern era: it may be one that clients of earlier revisions cannot read. */
  readonly modern?: Item
}

/** The result of one list request. It is serialized on first use, since it may have megabytes and most sessions never ask for it. */
export class List {
  readonly kind: ListKind
  readonly entries: readonly Entry[]
  readonly #extra: string
  #bytes: Promise<Buffer> | undefined

  /** @param extra the other members of the result, as the text of an object */
  constructor (kind: ListKind, entries: readonly Entry[], extra: string) {
    this.kind = kind
    this.entries = entries
    this.#extra = extra
  }

  /** The other members of the result, as the text of an object. */
  get extra (): string { return this.#extra }

  /** The same list with other members beside its entries. */
  withExtra (extra: string): List { return new List(this.kind, this.entries, extra) }

  /** The same list with other entries. */
  with (entries: readonly Entry[]): List {
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

  /** Its JSON as UTF-8, written once. */
  bytes (): Promise<Buffer> {
    this.#bytes ??= toBytes(this.#pieces())
    return this.#bytes
  }

  * #pieces (): Generator<string> {
    const rest = withMembers(this.#extra, { [this.kind]: undefined }).slice(0, -1)
    yield `${rest}${rest === '{' ? '' : ','}${JSON.stringify(this.kind)}:[`
    let between = ''
    for (const entry of this.entries) {
      yield `${between}${textOf(entry, listKinds[this.kind].key)}`
      between = ','
    }
    yield ']}'
  }
}

/** The text of an item as a view sees it. @param key the member that identifies it */
export function textOf ({ text, name, description }: Entry, key: string): string {
  if (name === undefined && description === undefined) return text
  const changes: Record<string, string> = {}
  if (name !== undefined) changes[key] = JSON.stringify(name)
  if (description !== undefined) changes.description = JSON.stringify(description)
  return withMembers(text, changes)
}

import { isObject, type Document } from '../apply.ts'
import { most, remembered, type Authorization, type Issued, type Revocation, type Token, type Tokens } from '../ports.ts'
import { StorageError } from '../store.ts'

/** What becomes of a section: the same value is not written; `written` is called once another one is, before anybody else sees it. */
export interface Kept<Result> { readonly value: unknown, readonly result: Result, readonly written?: () => void }

/** A settings file, as its tokens need it. */
export interface SectionFile {
  /** A section that is no part of snapshots, as it stands in the file. */
  section: (name: string) => unknown
  /** Makes another one of it, durably, one after the other. @throws StorageError when nothing was changed, and what `change` throws */
  keep: <Result>(name: string, change: (value: unknown) => Kept<Result>) => Promise<Result>
}

/** The section of the settings file. */
const section = 'oauthTokens'

/** A token as it stands in the file. One that was swapped stays as a used one. */
type Entry = Token & { readonly used?: boolean }
type Entries = ReadonlyMap<string, Entry>

/**
 * Tokens in the settings file. Entries of another shape are somebody else's, and stay. While the process runs, an edit can take
 * tokens away, and brings none back: an editor that was open for a while would make used tokens new.
 */
export class FileTokens implements Tokens {
  readonly #file: SectionFile
  readonly #most: number
  /** What the section said, and what that means; undefined: it was not looked at yet. */
  #known: { readonly value: unknown, readonly entries: Entries } | undefined
  /** Families that were revoked lately, and until when that is remembered. */
  readonly #revoked = new Map<string, number>()

  /** @param count how many tokens are kept */
  constructor (file: SectionFile, count: number = most.tokensInFile) {
    this.#file = file
    this.#most = count
  }

  async put (authorization: Authorization, issued: readonly Issued[]): Promise<void> {
    await this.#change((entries) => { this.#add(entries, authorization, issued) })
  }

  async find (hash: string): Promise<Token | undefined> {
    const found = this.#entries(this.#file.section(section)).get(hash)
    if (found === undefined || found.used === true || found.expiresAt <= Date.now()) return undefined
    const { used, ...token } = found
    return token
  }

  async swap (hash: string, issued: readonly Issued[]): Promise<'swapped' | 'reused' | 'unknown'> {
    return await this.#change((entries) => {
      const found = entries.get(hash)
      if (found === undefined || found.kind !== 'refresh' || found.expiresAt <= Date.now()) return 'unknown'
      if (found.used === true) {
        this.#revoke(entries, ({ family }) => family === found.family)
        return 'reused'
      }
      entries.set(hash, { ...found, used: true })
      this.#add(entries, found, issued)
      return 'swapped'
    })
  }

  async revoke (what: Revocation): Promise<void> {
    if ('family' in what) this.#remember(what.family)
    await this.#change((entries) => {
      if (!('hash' in what)) {
        this.#revoke(entries, ({ family, clientId, username }) =>
          'family' in what ? family === what.family : 'clientId' in what ? clientId === what.clientId : username === what.username
        )
      } else if (entries.get(what.hash)?.used !== true) entries.delete(what.hash)
    })
  }

  #add (entries: Map<string, Entry>, { family, clientId, username }: Authorization, issued: readonly Issued[]): void {
    if ((this.#revoked.get(family) ?? 0) > Date.now()) return
    for (const { hash, kind, scope, resource, expiresAt } of issued) {
      entries.set(hash, {
        hash,
        kind,
        family,
        clientId,
        ...(username === undefined ? {} : { username }),
        scope,
        ...(resource === undefined ? {} : { resource }),
        expiresAt
      })
    }
  }

  /** What was used stays: it tells when it is used again. */
  #revoke (entries: Map<string, Entry>, which: (token: Entry) => boolean): void {
    for (const token of [...entries.values()].filter(which)) {
      this.#remember(token.family)
      if (token.used !== true) entries.delete(token.hash)
    }
  }

  #remember (family: string): void {
    for (const [former, until] of this.#revoked) {
      if (until > Date.now() && this.#revoked.size < this.#most) break
      this.#revoked.delete(former)
    }
    this.#revoked.set(family, Date.now() + remembered)
  }

  /** Works on a copy of what there is; where that changes something, it is written. @throws StorageError */
  async #change<Result> (work: (entries: Map<string, Entry>) => Result): Promise<Result> {
    return await this.#file.keep(section, (value) => {
      if (value !== undefined && value !== null && !Array.isArray(value)) {
        throw new StorageError(
          `"${section}" in the settings is of another kind than it should be, and is kept as it is: mend it first.`,
          false
        )
      }
      const former = this.#entries(value)
      const changed = new Map(former)
      const result = work(changed)
      if (changed.size === former.size && [...changed].every(([hash, token]) => former.get(hash) === token)) return { value, result }
      const entries = bounded(changed, this.#most)
      const next = [...(value ?? []).filter((entry) => !isEntry(entry)), ...entries.values()]
      return { value: next, result, written: () => { this.#known = { value: next, entries } } }
    })
  }

  /** What a value of the section means. One that is not ours is an edit. */
  #entries (value: unknown): Entries {
    if (this.#known !== undefined && this.#known.value === value) return this.#known.entries
    const said = new Map((Array.isArray(value) ? value : []).filter(isEntry).map((entry) => [entry.hash, entry]))
    this.#known = {
      value,
      entries: this.#known === undefined ? said : new Map([...this.#known.entries].filter(([hash]) => said.has(hash)))
    }
    return this.#known.entries
  }
}

/** A document without tokens of ours: elsewhere they would not hear of being revoked, and come back from there. */
export function withoutTokens (document: Document): Document {
  const value = document[section]
  return Array.isArray(value) && value.some(isEntry) ? { ...document, [section]: value.filter((entry) => !isEntry(entry)) } : document
}

/** Without what has expired; where they are still too many, without the families that have most. */
function bounded (entries: Entries, count: number): Entries {
  const tokens = [...entries].filter(([, { expiresAt }]) => expiresAt > Date.now())
  if (tokens.length <= count) return new Map(tokens)
  const families = new Map<string, { family: string, size: number, last: number }>()
  for (const [, { family, expiresAt }] of tokens) {
    const before = families.get(family)
    families.set(family, { family, size: (before?.size ?? 0) + 1, last: Math.max(before?.last ?? 0, expiresAt) })
  }
  let running = 0
  const kept = new Set(
    [...families.values()]
      .sort((one, other) => one.size - other.size || other.last - one.last)
      .filter(({ size }) => (running += size) <= count)
      .map(({ family }) => family)
  )
  return new Map(tokens.filter(([, { family }]) => kept.has(family)))
}

function isEntry (entry: unknown): entry is Entry {
  if (!isObject(entry)) return false
  const { hash, kind, family, clientId, username, scope, resource, expiresAt, used } = entry
  const isText = (value: unknown): boolean => typeof value === 'string'
  return (
    [undefined, true, false].includes(used as boolean) &&
    isText(hash) &&
    (kind === 'access' || kind === 'refresh') &&
    [family, clientId, scope].every(isText) &&
    [username, resource].every((value) => value === undefined || isText(value)) &&
    typeof expiresAt === 'number'
  )
}

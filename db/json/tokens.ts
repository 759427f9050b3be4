import { isObject, type Document } from '../apply.ts'
import { maxEntries, retention, type Authorization, type Issued, type Revocation, type Token, type Tokens } from '../ports.ts'
import { StorageError } from '../store.ts'

/** The new value of a section; an identical value is not written. `onWritten` is called once it is written, before the next update. */
export interface SectionUpdate<Result> { readonly value: unknown, readonly result: Result, readonly onWritten?: () => void }

/** Access to a section of a settings file. */
export interface SectionFile {
  /** The value of a section as it is in the file. For sections that are no part of snapshots. */
  section: (name: string) => unknown
  /** Changes a section durably; updates run one at a time. @throws StorageError when nothing was changed, or the error of `change` */
  updateSection: <Result>(name: string, change: (value: unknown) => SectionUpdate<Result>) => Promise<Result>
}

/** The name of the section of tokens. */
const section = 'oauthTokens'

/** A token as it is stored in the file. A refresh token that was swapped is kept as `used`. */
type Entry = Token & { readonly used?: boolean }
type Entries = ReadonlyMap<string, Entry>

/**
 * Tokens in the settings file. Entries of another shape are kept unchanged. While the process runs, an edit of the file can remove tokens
 * but not add any: saving an older version from an editor would make used tokens valid again.
 */
export class FileTokens implements Tokens {
  readonly #file: SectionFile
  readonly #maxTokens: number
  /** The last value of the section with the tokens in it; undefined: it was not read yet. */
  #known: { readonly value: unknown, readonly entries: Entries } | undefined
  /** Recently revoked families, each with the time when it may be forgotten. */
  readonly #revoked = new Map<string, number>()

  /** @param count max tokens kept; beyond, the families with the most tokens are removed */
  constructor (file: SectionFile, count: number = maxEntries.tokensInFile) {
    this.#file = file
    this.#maxTokens = count
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

  async revoke (target: Revocation): Promise<void> {
    if ('family' in target) this.#remember(target.family)
    await this.#change((entries) => {
      if (!('hash' in target)) this.#revoke(entries, (token) => isAffected(token, target))
      else if (entries.get(target.hash)?.used !== true) entries.delete(target.hash)
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

  /** Removes tokens. Used ones are kept, so that their reuse is detected. */
  #revoke (entries: Map<string, Entry>, which: (token: Entry) => boolean): void {
    for (const token of [...entries.values()].filter(which)) {
      this.#remember(token.family)
      if (token.used !== true) entries.delete(token.hash)
    }
  }

  #remember (family: string): void {
    for (const [former, until] of this.#revoked) {
      if (until > Date.now() && this.#revoked.size < this.#maxTokens) break
      this.#revoked.delete(former)
    }
    this.#revoked.set(family, Date.now() + retention)
  }

  /** Runs work on a copy of the tokens, and writes them if it changes any. @throws StorageError */
  async #change<Result> (work: (entries: Map<string, Entry>) => Result): Promise<Result> {
    return await this.#file.updateSection(section, (value) => {
      if (value !== undefined && value !== null && !Array.isArray(value)) {
        throw new StorageError(
          `"${section}" in the settings is not of the expected type, and is kept as it is: correct it first.`,
          false
        )
      }
      const former = this.#entries(value)
      const changed = new Map(former)
      const result = work(changed)
      if (changed.size === former.size && [...changed].every(([hash, token]) => former.get(hash) === token)) return { value, result }
      const entries = bounded(changed, this.#maxTokens)
      const next = [...(value ?? []).filter((entry) => !isEntry(entry)), ...entries.values()]
      return { value: next, result, onWritten: () => { this.#known = { value: next, entries } } }
    })
  }

  /** The tokens in a value of the section. A value that this object did not write is an edit: it can only remove tokens. */
  #entries (value: unknown): Entries {
    if (this.#known !== undefined && this.#known.value === value) return this.#known.entries
    const found = new Map((Array.isArray(value) ? value : []).filter(isEntry).map((entry) => [entry.hash, entry]))
    this.#known = {
      value,
      entries: this.#known === undefined ? found : new Map([...this.#known.entries].filter(([hash]) => found.has(hash)))
    }
    return this.#known.entries
  }
}

/** Whether a revocation of a family, client or user includes a token. */
function isAffected ({ family, clientId, username }: Token, target: Exclude<Revocation, { readonly hash: string }>): boolean {
  if ('family' in target) return family === target.family
  return 'clientId' in target ? clientId === target.clientId : username === target.username
}

/** Removes the tokens from a document. A copy of it must not bring back tokens that are revoked after it was made. */
export function withoutTokens (document: Document): Document {
  const value = document[section]
  return Array.isArray(value) && value.some(isEntry) ? { ...document, [section]: value.filter((entry) => !isEntry(entry)) } : document
}

/** Removes expired tokens; if there are still too many, also the families with the most tokens. */
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

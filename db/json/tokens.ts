import type { Document } from '../apply.ts'
import { isObject } from '../../schemas/unknown-members.ts'
import { maxRecords, retention, type TokenFamily, type IssuedToken, type Revocation, type StoredToken, type Tokens } from '../ports.ts'
import { consentSection, isConsent } from './consents.ts'
import { isUpstreamToken, upstreamSection } from './upstream-tokens.ts'
import { EntryList, type SectionFile, type Sections, type SectionsUpdate } from './section.ts'

/** The name of the section of tokens. */
const section = 'oauthTokens'

/** A token as it is stored in the file. A refresh token that was swapped is kept as `used`. */
type Entry = StoredToken & { readonly used?: boolean }

/**
 * Tokens in the settings file. Entries of another shape are kept unchanged. While the process runs, an edit of the file can remove tokens
 * but not add any: saving an older version from an editor would make used tokens valid again.
 */
export class FileTokens implements Tokens {
  readonly #list: EntryList<Entry>
  readonly #maxTokens: number
  readonly #now: () => number
  /** Recently revoked families, each with the time when it may be forgotten. */
  readonly #revoked = new Map<string, number>()

  /**
   * @param count max tokens kept; beyond, the families with the most tokens are removed
   * @param now the clock, in ms since 1970
   */
  constructor (file: SectionFile, count: number = maxRecords.tokensInFile, now = () => Date.now()) {
    this.#list = new EntryList(file, {
      name: section,
      isEntry,
      keyOf: ({ hash }) => hash,
      isEditable: false,
      limit: (entries) => { removeExcess(entries, count, now()) }
    })
    this.#maxTokens = count
    this.#now = now
  }

  async put (authorization: TokenFamily, issued: readonly IssuedToken[]): Promise<void> {
    await this.#list.change((entries) => { this.#add(entries, authorization, issued) })
  }

  async find (hash: string): Promise<StoredToken | undefined> {
    const found = this.#list.entries.get(hash)
    if (found === undefined || !isValid(found, this.#now())) return undefined
    const { used, ...token } = found
    return token
  }

  // There is one process, which knows what it revoked.
  async revokedWithin (time: number): Promise<string[]> {
    const since = this.#now() - time + retention
    return [...this.#revoked].filter(([, until]) => until >= since).map(([family]) => family)
  }

  async swap (hash: string, issued: readonly IssuedToken[]): Promise<'swapped' | 'reused' | 'unknown'> {
    return await this.#list.change((entries) => {
      const found = entries.get(hash)
      if (found === undefined || found.kind !== 'refresh' || found.expiresAt <= this.#now()) return 'unknown'
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
    await this.#list.change((entries) => {
      if (!('hash' in target)) this.#revoke(entries, (token) => isAffected(token, target))
      else if (entries.get(target.hash)?.used !== true) entries.delete(target.hash)
    })
  }

  /** Works out the update that revokes the tokens of clients. */
  planRevocation (sections: Sections, clientIds: ReadonlySet<string>): SectionsUpdate<void> {
    if (!Array.isArray(sections(section))) return { changed: {}, result: undefined }
    return this.#list.plan(sections, (entries) => { this.#revoke(entries, ({ clientId }) => clientIds.has(clientId)) })
  }

  #add (entries: Map<string, Entry>, { family, clientId, username, mark }: TokenFamily, issued: readonly IssuedToken[]): void {
    if ((this.#revoked.get(family) ?? 0) > this.#now()) return
    for (const { hash, kind, scope, resource, expiresAt } of issued) {
      entries.set(hash, {
        hash,
        kind,
        family,
        clientId,
        ...(username === undefined ? {} : { username }),
        ...(mark === undefined ? {} : { mark }),
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
      if (until > this.#now() && this.#revoked.size < this.#maxTokens) break
      this.#revoked.delete(former)
    }
    this.#revoked.set(family, this.#now() + retention)
  }
}

const isValid = ({ used, expiresAt }: Entry, now: number): boolean => used !== true && expiresAt > now

/** Whether a revocation of a family, client or user includes a token. */
function isAffected ({ family, clientId, username }: StoredToken, target: Exclude<Revocation, { readonly hash: string }>): boolean {
  if ('family' in target) return family === target.family
  return (
    (target.clientId === undefined || clientId === target.clientId) &&
    (target.username === undefined || username === target.username)
  )
}

/**
 * Removes the tokens, consents and logins at upstreams from a document. A copy of it must not bring back what is revoked or withdrawn
 * after it was made.
 */
export function withoutTokens (document: Document): Document {
  const without = (name: string, isEntry: (entry: unknown) => boolean): Document => {
    const value = document[name]
    return Array.isArray(value) && value.some(isEntry) ? { [name]: value.filter((entry) => !isEntry(entry)) } : {}
  }
  const changed = {
    ...without(section, isEntry),
    ...without(consentSection, isConsent),
    ...without(upstreamSection, isUpstreamToken)
  }
  return Object.keys(changed).length === 0 ? document : { ...document, ...changed }
}

/** Removes expired tokens; if there are still too many, also the families with the most tokens. */
function removeExcess (entries: Map<string, Entry>, count: number, now: number): void {
  for (const [hash, { expiresAt }] of entries) if (expiresAt <= now) entries.delete(hash)
  if (entries.size <= count) return
  const families = new Map<string, { family: string, size: number, last: number }>()
  for (const [, { family, expiresAt }] of entries) {
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
  for (const [hash, { family }] of entries) if (!kept.has(family)) entries.delete(hash)
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

import { randomUUID } from 'node:crypto'
import type { StoredUserValues, UserValueKey, UserValueRecords } from '../../../db/ports/user-values.ts'
import type { RpcError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { type UserVariableValues, missingVariables } from '../../../schemas/user-variables.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { createRedactor } from '../../base/secrets/index.ts'
import { upstreamLimits } from '../limits.ts'
import { UserActionRequired, type UserActionPage } from '../login/problems.ts'

/** Called when the values of a user have changed; `values` is undefined if the user has removed them. */
export type ValuesListener = (user: string, values: UserVariableValues | undefined) => void

/** Values that a user enters, by the names of their variables; null removes a stored value. */
export type GivenByUser = Readonly<Record<string, string | null>>

interface ServerValuesDeps {
  readonly server: string
  readonly config: ServerConfig
  /** The server's owner, whose values the gateway's own link uses. */
  readonly owner: string
  readonly records: UserValueRecords
  /** Returns the key under which a user's values for this config are stored; undefined if there is no such user. */
  readonly keyOf: (user: string) => UserValueKey | undefined
  /** Creates a page on which the user in this key enters values. */
  readonly openPage: (key: UserValueKey) => Promise<PageAddress>
  readonly changed: ValuesListener
}

/** The URL of a page on which a user enters values. */
export interface PageAddress {
  readonly url: string
  /** The version of the user's stored values that the page completes; undefined if there were none. */
  readonly version: string | undefined
}

interface HeldValues { readonly version: string, readonly values: UserVariableValues }
interface OpenPage extends UserActionPage, PageAddress { readonly recipients: Set<Client> }

/** Min length of values that are masked in texts: shorter ones are hardly secrets, and occur within ordinary words. */
const minMaskedLength = 4

/** The values that users have provided for one server. Each user's connection is made with that user's values. */
export class ServerValues {
  readonly #deps: ServerValuesDeps
  /** The values of users who have provided all required ones, by user. */
  readonly #held = new BoundedMap<string, HeldValues>(upstreamLimits.login.holders)
  /** Users who are known to lack required values, with the page to open, if there is one. */
  readonly #lacking = new BoundedMap<string, OpenPage | undefined>(upstreamLimits.login.flows)
  readonly #opening = new Map<string, Promise<OpenPage | undefined>>()
  /** The values to mask in texts of the server, including former values, which may still occur there. */
  readonly #masked = new BoundedMap<string, true>(4 * upstreamLimits.login.holders)
  #scrub: ((text: string) => string) | undefined
  /** Whether the gateway's own link could not be opened because the server's owner lacks values. */
  isOwnerLackingValues = false

  constructor (deps: ServerValuesDeps) {
    this.#deps = deps
  }

  /** Whether the values of a user are in memory. If not, call `require` to find out whether they exist. */
  has (user: string): boolean { return this.#held.has(user) }

  /** Whether a user is known to lack values. */
  isLackingValues (user: string): boolean { return this.#lacking.has(user) }

  /** Loads the values of a client's user. @throws RpcError with the page to open if the user lacks required values */
  async require (client: Client): Promise<void> {
    if (await this.#find(client.user)) return
    throw (await this.#refuse(client.user)).toRpcError(this.#deps.server, client)
  }

  /**
   * Returns the error for a client whose user is known to lack values; undefined if no value is known to be missing.
   */
  refusal (client: Client): RpcError | undefined {
    if (!this.#lacking.has(client.user)) return undefined
    void this.#refuse(client.user)
    return this.#toError(client.user, this.#lacking.get(client.user)).toRpcError(this.#deps.server, client)
  }

  /**
   * Returns the values for a link.
   * @param user the user of the link; undefined for a link of the gateway, which uses the owner's values
   * @throws UserActionRequired if required values are missing, StorageError
   */
  async valuesFor (user: string | undefined): Promise<UserVariableValues> {
    const held = await this.#find(user ?? this.#deps.owner)
    if (user === undefined) this.isOwnerLackingValues = !held
    if (held) return held.values
    if (user !== undefined) throw await this.#refuse(user)
    const { server, owner, config } = this.#deps
    const names = missingVariables(config, new Map()).join(', ')
    throw new UserActionRequired('values', 'manager', undefined,
      `it requires values from its owner ${owner} first: ${names} (PUT /api/servers/${encodeURIComponent(server)}/` +
      'my-variables)')
  }

  /** Whether a link of user `user` uses the values of user `other`. @param user undefined for links of the gateway */
  usesValuesOf (user: string | undefined, other: string): boolean { return (user ?? this.#deps.owner) === other }

  /**
   * Handles a change of a user's values.
   * @param version the version that is stored now; undefined if it is unknown or the values were removed
   */
  async onChanged (user: string, version?: string): Promise<void> {
    const held = this.#held.get(user)
    if (version !== undefined && held?.version === version) return
    this.#held.delete(user)
    const now = await this.#find(user)
    if (now) this.#endPage(user)
    else this.#dropPage(user, version)
    if (now || held) this.#deps.changed(user, now?.values)
  }

  /** Masks the values of users in a text. */
  mask (text: string): string {
    this.#scrub ??= createRedactor([...this.#masked.keys()].flatMap(spellingsOf))
    return this.#scrub(text)
  }

  async #find (user: string): Promise<HeldValues | undefined> {
    const known = this.#held.get(user)
    if (known) return known
    const key = this.#deps.keyOf(user)
    if (!key) return undefined
    const stored = await findValues(this.#deps.records, key)
    const values = new Map(Object.entries(stored?.values ?? {}))
    if (missingVariables(this.#deps.config, values).length > 0) return undefined
    // The account may have been removed meanwhile. A later one of its name must not get the values.
    if (this.#deps.keyOf(user)?.account !== key.account) return undefined
    const held = { version: stored?.version ?? '', values }
    this.#held.setNewest(user, held)
    for (const value of values.values()) if (value.length >= minMaskedLength) this.#masked.setNewest(value, true)
    this.#scrub = undefined
    return held
  }

  async #refuse (user: string): Promise<UserActionRequired> {
    const opening = this.#opening.get(user) ??
      this.#openPage(user).finally(() => { this.#opening.delete(user) })
    this.#opening.set(user, opening)
    return this.#toError(user, await opening)
  }

  #toError (user: string, page: UserActionPage | undefined): UserActionRequired {
    const who = this.#deps.keyOf(user) ? 'user' : 'nobody'
    return new UserActionRequired('values', who, page, 'it requires values from its user first')
  }

  /** Returns a recent or new page for a user; undefined if none can be created. */
  async #openPage (user: string): Promise<OpenPage | undefined> {
    const known = this.#lacking.get(user)
    if (known && Date.now() - known.begunAt < upstreamLimits.login.flowTime / 2) return known
    const key = this.#deps.keyOf(user)
    const address = key && await this.#deps.openPage(key).catch(() => undefined)
    const recipients = new Set<Client>()
    const page = address === undefined
      ? undefined
      : {
          ...address,
          id: randomUUID(),
          begunAt: Date.now(),
          recipients,
          addRecipient: (client: Client) => {
            if (recipients.size < upstreamLimits.login.notified) recipients.add(client)
          }
        }
    this.#lacking.setNewest(user, page)
    return page
  }

  /**
   * Forgets a user's page if it is for another version of the values, or `version` is undefined: it has become invalid.
   */
  #dropPage (user: string, version: string | undefined): void {
    const page = this.#lacking.get(user)
    if (page && (version === undefined || page.version !== version)) this.#lacking.setNewest(user, undefined)
  }

  /** Forgets the page of a user who has provided the values, and notifies the clients to which its URL was sent. */
  #endPage (user: string): void {
    const page = this.#lacking.get(user)
    this.#lacking.delete(user)
    const params = JSON.stringify({ elicitationId: page?.id })
    for (const { listener } of page?.recipients ?? []) listener?.deliver('notifications/elicitation/complete', params)
  }
}

/**
 * Finds the stored values of a user.
 * @returns undefined if there are none, or another account provided them, or they are for another target
 * @throws StorageError
 */
export async function findValues (
  records: UserValueRecords, { server, user, account, target }: UserValueKey
): Promise<StoredUserValues | undefined> {
  const stored = await records.find(server, user)
  return stored?.account === account && stored.target === target ? stored : undefined
}

/**
 * Merges the given values into a user's stored ones.
 * @param stored the stored values; ignored if they belong to another account or target
 */
export function valuesAfter (
  key: UserValueKey, stored: StoredUserValues | undefined, given: GivenByUser
): UserVariableValues {
  const isOwn = stored?.account === key.account && stored.target === key.target
  const values = Object.entries({ ...isOwn ? stored.values : {}, ...given })
  return new Map(values.filter((each): each is [string, string] => each[1] !== null))
}

/** Returns the forms in which a text may contain a value: as it is, escaped in JSON, and percent-encoded. */
const spellingsOf = (value: string): string[] =>
  [...new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)])]

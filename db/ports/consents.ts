import { clientLabel, recordCollections, type RecordCollection, type Records } from '../records.ts'

/** The scopes that a user has granted to a client, remembered so that the user is not asked again. */
export interface Consent {
  readonly username: string
  readonly clientId: string
  /** Scopes, separated by spaces. */
  readonly scope: string
  /** The resource that the consent is for (RFC 8707). */
  readonly resource?: string
  /** An opaque version of the account's rights and password. If it differs later, the consent is void. */
  readonly mark?: string
  readonly grantedAt: number
}

/**
 * Remembered consents as records, one per user and client, owned by the user. They are removed with their client
 * (`OAuthClients.remove`). Users are part of the settings, which are not in the transactions of a port: code that
 * removes a user must also remove the user's consents, login sessions and tokens. It must do the same before it creates
 * a user, since the removal of a former user of that name may have been interrupted.
 */
export class Consents {
  readonly #records: Records
  readonly #consents: RecordCollection

  constructor (records: Records, consents: RecordCollection = recordCollections.consents) {
    this.#records = records
    this.#consents = consents
  }

  /** Stores a consent in place of the former one of this user to this client. */
  async put ({ username, clientId, scope, resource, mark, grantedAt }: Consent): Promise<void> {
    const more = { ...resource === undefined ? {} : { resource }, ...mark === undefined ? {} : { mark } }
    await this.#records.put(this.#consents, [{
      key: consentKey(username, clientId),
      value: { username, clientId, scope, ...more, grantedAt } satisfies Consent,
      owner: username,
      labels: [clientLabel(clientId)],
      at: grantedAt
    }])
  }

  async find (username: string, clientId: string): Promise<Consent | undefined> {
    return (await this.#records.find(this.#consents, consentKey(username, clientId)))?.value as Consent | undefined
  }

  /** Lists the consents of a user, newest first. */
  async list (username: string): Promise<Consent[]> {
    return (await this.#records.list(this.#consents, { owner: username })).map(({ value }) => value as Consent)
  }

  /** Removes a consent. @returns whether it existed */
  async remove (username: string, clientId: string): Promise<boolean> {
    return await this.#records.remove(this.#consents, consentKey(username, clientId)) > 0
  }

  /** Removes all consents of a user, or to a client. */
  async removeAll (target: { readonly username: string } | { readonly clientId: string }): Promise<void> {
    const filter = 'username' in target ? { owner: target.username } : { labels: [clientLabel(target.clientId)] }
    await this.#records.remove(this.#consents, filter)
  }
}

const consentKey = (username: string, clientId: string): string => JSON.stringify([username, clientId])

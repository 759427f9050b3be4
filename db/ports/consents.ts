import { clientLabel, recordCollections, RecordPort } from '../records.ts'

const { consents } = recordCollections

/** The scopes that a user has granted to an OAuth client, stored so that the user is not asked again. */
export interface Consent {
  readonly username: string
  readonly clientId: string
  /** Scopes, separated by spaces. */
  readonly scope: string
  /** The resource that the consent is for (RFC 8707). */
  readonly resource?: string
  /** An opaque digest of the account's rights and password (`rightsMarkOf`). Once these change, the consent is void. */
  readonly mark?: string
  readonly grantedAt: number
}

/**
 * Stores consents as records, one per user and client, owned by the user. A consent is removed with its client
 * (`OAuthClients.remove`), but not with its user: users are part of the settings, which no transaction of a port can
 * change. Code that removes a user must also remove the user's consents, login states and tokens. Code that creates a
 * user must do the same first, since the removal of a former user of that name may have been interrupted.
 */
export class Consents extends RecordPort {
  /** Stores a consent. It replaces the user's former consent for the same client. */
  async put ({ username, clientId, scope, resource, mark, grantedAt }: Consent): Promise<void> {
    const more = { ...resource === undefined ? {} : { resource }, ...mark === undefined ? {} : { mark } }
    await this.records.put(consents, [{
      key: consentKey(username, clientId),
      value: { username, clientId, scope, ...more, grantedAt } satisfies Consent,
      owner: username,
      labels: [clientLabel(clientId)],
      at: grantedAt
    }])
  }

  async find (username: string, clientId: string): Promise<Consent | undefined> {
    return (await this.records.find(consents, consentKey(username, clientId)))?.value as Consent | undefined
  }

  /** Lists the consents of a user, newest first. */
  async list (username: string): Promise<Consent[]> {
    return (await this.records.list(consents, { owner: username })).map(({ value }) => value as Consent)
  }

  /** Removes a consent. @returns whether it existed */
  async remove (username: string, clientId: string): Promise<boolean> {
    return await this.records.remove(consents, consentKey(username, clientId)) > 0
  }

  /** Removes all consents that a user has given, or that a client has received. */
  async removeAll (target: { readonly username: string } | { readonly clientId: string }): Promise<void> {
    const filter = 'username' in target ? { owner: target.username } : { labels: [clientLabel(target.clientId)] }
    await this.records.remove(consents, filter)
  }
}

const consentKey = (username: string, clientId: string): string => JSON.stringify([username, clientId])

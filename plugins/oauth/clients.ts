import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Client, Clients } from '../../db/ports.ts'
import { errors } from '../errors/list.ts'
import { sha256 } from '../secrets/hash.ts'
import { readClientMetadata, type ClientMetadata } from './client-metadata.ts'
import { OAuthError } from '../errors/oauth-error.ts'
import type { OAuthSettings } from './settings.ts'

export type { Client }

/** A client, with the secrets that are shown only now. */
export interface Issued { readonly client: Client, readonly secret?: string, readonly registrationToken?: string }

type Json = Readonly<Record<string, unknown>>

const newToken = (): string => randomBytes(32).toString('base64url')

/** Whether a secret has this SHA-256, in the same time for every answer. */
export const matches = (secret: string, hash: string | undefined): boolean =>
  hash !== undefined && timingSafeEqual(Buffer.from(sha256(secret)), Buffer.from(hash.padEnd(64, '-').slice(0, 64)))

/** Members of the answer to a registration that a client must not send back (RFC 7592, section 2.2). */
const notSentBack = ['registration_access_token', 'registration_client_uri', 'client_secret_expires_at', 'client_id_issued_at']

/**
 * The clients of the authorization server: those that register themselves (RFC 7591, RFC 7592), and those that admins make. One function
 * stores a client, whoever asks for it.
 */
export class ClientRegistry {
  readonly #clients: Clients
  readonly #settings: () => OAuthSettings
  readonly #revoke: (clientId: string) => Promise<void>

  /** @param revoke ends all tokens of a client */
  constructor (clients: Clients, settings: () => OAuthSettings, revoke: (clientId: string) => Promise<void>) {
    this.#clients = clients
    this.#settings = settings
    this.#revoke = revoke
  }

  /** Registers a client (RFC 7591). @throws OAuthError */
  async register (body: unknown): Promise<Issued> {
    const registrationToken = newToken()
    return { ...await this.#create(readClientMetadata(asObject(body), this.#settings(), false), registrationToken), registrationToken }
  }

  /** A client that registered itself, by its registration token. @throws OAuthError `invalid_token`, also for an unknown client */
  async registered (clientId: string, token: string | undefined): Promise<Client> {
    const client = await this.#clients.find(clientId)
    if (token === undefined || !client || !matches(token, client.registrationTokenHash)) {
      throw new OAuthError('invalid_token', 'The registration access token is not valid for this client', 401)
    }
    return client
  }

  /** Replaces the metadata of a client that registered itself (RFC 7592, section 2.2). @throws OAuthError */
  async updateRegistered (clientId: string, token: string | undefined, body: unknown): Promise<Issued> {
    const client = await this.registered(clientId, token)
    const sent = asObject(body)
    const surplus = notSentBack.find((name) => sent[name] !== undefined)
    if (surplus !== undefined) throw new OAuthError('invalid_request', `The request must not hold "${surplus}"`)
    if (sent.client_id !== clientId) throw new OAuthError('invalid_request', '"client_id" must be that of the client, which never changes')
    const secret = sent.client_secret
    if (secret !== undefined && !(typeof secret === 'string' && matches(secret, client.secretHash))) {
      throw new OAuthError('invalid_request', '"client_secret" must be that of the client: it cannot be chosen')
    }
    return await this.#update(clientId, readClientMetadata(sent, this.#settings(), false))
  }

  /** @throws OAuthError */
  async removeRegistered (clientId: string, token: string | undefined): Promise<void> {
    await this.registered(clientId, token)
    await this.#remove(clientId)
  }

  /** A client of any origin; undefined where it is unknown, or described by a document of its own. */
  async find (clientId: string): Promise<Client | undefined> { return await this.#clients.find(clientId) }

  async list (): Promise<Client[]> { return await this.#clients.list() }

  /** @throws NoSuch */
  async get (clientId: string): Promise<Client> { return existing(await this.#clients.find(clientId)) }

  /** Makes a client for an admin. @param metadata as RFC 7591 writes it @throws InvalidInput */
  async create (metadata: Json): Promise<Issued> {
    return await this.#create(this.#read(metadata, 'admin'))
  }

  /** Replaces what an admin states of a client. @throws InvalidInput, NoSuch */
  async update (clientId: string, metadata: (client: Client) => Json): Promise<Issued> {
    const client = await this.get(clientId)
    return await this.#update(clientId, this.#read(metadata(client), client.origin))
  }

  /** @throws NoSuch */
  async remove (clientId: string): Promise<void> {
    if (!await this.#remove(clientId)) throw new errors.NoSuch('client')
  }

  /** Gives a client another secret; its tokens end. @throws NoSuch, InvalidInput for a public client */
  async regenerateSecret (clientId: string): Promise<Issued> {
    const { secretHash } = await this.get(clientId)
    if (secretHash === undefined) throw new errors.InvalidInput('This client is public: it has no secret')
    const secret = newToken()
    const client = existing(await this.#clients.replace(clientId, (current) => ({ ...current, secretHash: sha256(secret) })))
    await this.#revoke(clientId)
    return { client, secret }
  }

  async #create (metadata: ClientMetadata, registrationToken?: string): Promise<Issued> {
    const secret = needsSecret(metadata) ? newToken() : undefined
    const client: Client = {
      ...metadata,
      clientId: newToken().slice(0, 22),
      ...(secret === undefined ? {} : { secretHash: sha256(secret) }),
      ...(registrationToken === undefined ? {} : { registrationTokenHash: sha256(registrationToken) }),
      origin: registrationToken === undefined ? 'admin' : 'registered',
      createdAt: Date.now()
    }
    if (!await this.#clients.create(client)) throw new Error('a random client id exists already')
    return { client, secret }
  }

  /** A client that begins to need a secret gets one; one that needs none any more loses it. */
  async #update (clientId: string, metadata: ClientMetadata): Promise<Issued> {
    const secret = newToken()
    let isNew = false
    let former: readonly string[] = []
    const client = existing(await this.#clients.replace(clientId, (current) => {
      const { secretHash, registrationTokenHash, origin, createdAt, lastUsedAt } = current
      isNew = needsSecret(metadata) && secretHash === undefined
      former = current.scope.split(' ')
      const kept = needsSecret(metadata) ? secretHash ?? sha256(secret) : undefined
      return {
        ...metadata,
        clientId,
        ...(kept === undefined ? {} : { secretHash: kept }),
        ...(registrationTokenHash === undefined ? {} : { registrationTokenHash }),
        origin,
        createdAt,
        ...(lastUsedAt === undefined ? {} : { lastUsedAt })
      }
    }))
    // What was granted with a scope that is taken away ends.
    if (former.some((scope) => !client.scope.split(' ').includes(scope))) await this.#revoke(clientId)
    return isNew ? { client, secret } : { client }
  }

  async #remove (clientId: string): Promise<boolean> {
    const existed = await this.#clients.remove(clientId)
    await this.#revoke(clientId)
    return existed
  }

  /** @throws InvalidInput */
  #read (metadata: Json, origin: Client['origin']): ClientMetadata {
    const settings = this.#settings()
    const unknown = String(metadata.scope ?? '').split(' ').find((scope) => scope !== '' && !settings.allowedScopes.includes(scope))
    if (unknown !== undefined) {
      throw new errors.InvalidInput(`"scopes": ${JSON.stringify(unknown)} is not one of ${settings.allowedScopes.join(', ')}`)
    }
    try {
      return readClientMetadata(metadata, settings, origin === 'admin')
    } catch (error) {
      throw error instanceof OAuthError ? new errors.InvalidInput(error.message) : error
    }
  }
}

const needsSecret = ({ tokenEndpointAuthMethod }: ClientMetadata): boolean => tokenEndpointAuthMethod !== 'none'

function existing (client: Client | undefined): Client {
  if (!client) throw new errors.NoSuch('client')
  return client
}

/** @throws OAuthError */
function asObject (body: unknown): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new OAuthError('invalid_client_metadata', 'The body must be a JSON object with the metadata of the client')
  }
  return body as Json
}

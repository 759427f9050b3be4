import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { OAuthClient, OAuthClients } from '../../../db/ports/clients.ts'
import { withoutEmptyMembers } from '../../../protocol/json.ts'
import type { Author } from '../../settings/index.ts'
import { errors, noSuchError, OAuthError } from '../../base/errors/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { readClientMetadata, type ClientMetadata } from './client-metadata.ts'
import {
  checkClientChange, type AdminClientInput, type IssuedClient, readAdminClientInput
} from './client-api.ts'
import { allGrantTypes, type OAuthSettings } from './settings.ts'

/**
 * Records a change by an admin in the audit log.
 * @param before the client before the change; undefined for a new client
 * @param after the client after the change; undefined for a removed client
 */
type AuditClientChange = (by: Author, before: OAuthClient | undefined, after: OAuthClient | undefined) => void

/** The required members of a new client. */
interface NewClient { readonly name: string, readonly redirectUris: string[] }

type Json = Readonly<Record<string, unknown>>

const newToken = (): string => randomBytes(32).toString('base64url')

/** Whether the SHA-256 of a secret equals a hash in hex. Compares in constant time. */
export const matchesHash = (secret: string, hash: string | undefined): boolean =>
  // Both are hashed again, since a hash from a settings file may have any length.
  hash !== undefined && timingSafeEqual(Buffer.from(sha256(sha256(secret))), Buffer.from(sha256(hash)))

/** Members of a registration response that a client must not send back (RFC 7592, section 2.2). */
const notSentBack = [
  'registration_access_token', 'registration_client_uri', 'client_secret_expires_at', 'client_id_issued_at'
]

/** The clients of the authorization server, which register themselves (RFC 7591, RFC 7592) or are created by admins. */
export class ClientRegistry {
  readonly #clients: OAuthClients
  readonly #settings: () => OAuthSettings
  readonly #revoke: (clientId: string) => Promise<void>
  readonly #audit: AuditClientChange

  /**
   * @param revoke revokes all tokens of a client
   * @param audit records changes by admins; changes by clients are not recorded, since unauthenticated clients could
   *   flood the audit log
   */
  constructor (
    clients: OAuthClients, settings: () => OAuthSettings, revoke: (clientId: string) => Promise<void>,
    audit: AuditClientChange
  ) {
    this.#clients = clients
    this.#settings = settings
    this.#revoke = revoke
    this.#audit = audit
  }

  /** Registers a client (RFC 7591). @throws OAuthError */
  async register (body: unknown): Promise<IssuedClient> {
    const registrationToken = newToken()
    return {
      ...await this.#create(readClientMetadata(readMetadataBody(body), this.#settings()), registrationToken),
      registrationToken
    }
  }

  /** Finds a self-registered client by its registration token. @throws OAuthError `invalid_token` */
  async findRegistered (clientId: string, token: string | undefined): Promise<OAuthClient> {
    const client = await this.#clients.find(clientId)
    if (token === undefined || !client || !matchesHash(token, client.registrationTokenHash)) {
      throw new OAuthError('invalid_token', 'The registration access token is not valid for this client', 401)
    }
    return client
  }

  /** Replaces the metadata of a self-registered client (RFC 7592, section 2.2). @throws OAuthError */
  async updateRegistered (clientId: string, token: string | undefined, body: unknown): Promise<IssuedClient> {
    const client = await this.findRegistered(clientId, token)
    const members = readMetadataBody(body)
    const surplus = notSentBack.find((name) => members[name] !== undefined)
    if (surplus !== undefined) throw new OAuthError('invalid_request', `The request must not contain "${surplus}"`)
    if (members.client_id !== clientId) {
      throw new OAuthError('invalid_request', '"client_id" must be the one of the client: it cannot be changed')
    }
    const secret = members.client_secret
    if (secret !== undefined && !(typeof secret === 'string' && matchesHash(secret, client.secretHash))) {
      throw new OAuthError('invalid_request', '"client_secret" must be the one of the client: it cannot be chosen')
    }
    const metadata = readClientMetadata(members, this.#settings())
    return await this.#update(clientId, () => metadata)
  }

  /** Removes a self-registered client and its tokens (RFC 7592, section 2.3). @throws OAuthError */
  async removeRegistered (clientId: string, token: string | undefined): Promise<void> {
    await this.findRegistered(clientId, token)
    await this.#remove(clientId)
  }

  /** Finds a stored client; undefined if it is unknown, or described by a Client ID Metadata Document. */
  async find (clientId: string): Promise<OAuthClient | undefined> { return await this.#clients.find(clientId) }

  /** Returns one page of clients, oldest first, and their total number. @param page from 1 */
  async list (page: number, limit: number): Promise<{ clients: OAuthClient[], total: number }> {
    const [clients, total] =
      await Promise.all([this.#clients.list({ offset: (page - 1) * limit, limit }), this.#clients.count()])
    return { clients, total }
  }

  /** Returns a stored client. @throws NoSuch */
  async get (clientId: string): Promise<OAuthClient> {
    return requireClient(await this.#clients.find(clientId), clientId)
  }

  /** Creates a client on behalf of an admin. @param by the admin @throws InvalidInput */
  async create (by: Author, input: AdminClientInput & NewClient): Promise<IssuedClient> {
    const settings = this.#settings()
    const issued = await this.#create({
      name: input.name,
      redirectUris: input.redirectUris,
      grantTypes: allGrantTypes,
      responseTypes: ['code'],
      tokenEndpointAuthMethod: 'client_secret_basic',
      scope: settings.allowedScopes.join(' '),
      ...readAdminClientInput(input, settings)
    })
    this.#audit(by, undefined, issued.client)
    return issued
  }

  /**
   * Changes the members of a client that an admin sends; the others keep their values. The change may give the client a
   * secret, remove its secret, or revoke its tokens (`#update`).
   * @throws InvalidInput, NoSuch
   */
  async update (by: Author, clientId: string, input: AdminClientInput): Promise<IssuedClient> {
    const former = await this.get(clientId)
    checkClientChange(input, former)
    const issued = await this.#update(clientId, (client) => ({
      ...client,
      // A client from a settings file may lack `tokenEndpointAuthMethod`; one without a secret stays a public client.
      ...(client.secretHash === undefined ? { tokenEndpointAuthMethod: 'none' } : {}),
      ...readAdminClientInput(input, this.#settings(), client)
    }))
    this.#audit(by, former, issued.client)
    return issued
  }

  /** Removes a client and its tokens on behalf of an admin. @throws NoSuch */
  async remove (by: Author, clientId: string): Promise<void> {
    const former = await this.get(clientId)
    if (!await this.#remove(clientId)) throw noSuchError('client', clientId)
    this.#audit(by, former, undefined)
  }

  /** Replaces a client's secret and revokes its tokens. @throws NoSuch, InvalidInput for a public client */
  async regenerateSecret (by: Author, clientId: string): Promise<IssuedClient> {
    const former = await this.get(clientId)
    if (former.secretHash === undefined) throw new errors.InvalidInput('This client is public: it has no secret')
    const secret = newToken()
    const client = requireClient(
      await this.#clients.replace(clientId, (current) => ({ ...current, secretHash: sha256(secret) })),
      clientId
    )
    await this.#revoke(clientId)
    this.#audit(by, former, client)
    return { client, secret }
  }

  async #create (metadata: ClientMetadata, registrationToken?: string): Promise<IssuedClient> {
    const secret = needsSecret(metadata) ? newToken() : undefined
    const client: OAuthClient = {
      ...metadata,
      clientId: newToken().slice(0, 22),
      ...(secret === undefined ? {} : { secretHash: sha256(secret) }),
      ...(registrationToken === undefined ? {} : { registrationTokenHash: sha256(registrationToken) }),
      origin: registrationToken === undefined ? 'admin' : 'registered',
      createdAt: Date.now()
    }
    if (!await this.#clients.create(client)) throw new Error('a random client id already exists')
    return { client, secret }
  }

  /**
   * Changes a client. A client that becomes confidential gets a secret; one that becomes public loses its secret. If
   * the client loses a scope, its tokens are revoked.
   */
  async #update (clientId: string, change: (client: OAuthClient) => ClientMetadata): Promise<IssuedClient> {
    const secret = newToken()
    let isNew = false
    let former: readonly string[] = []
    const client = requireClient(await this.#clients.replace(clientId, (current) => {
      const { secretHash, registrationTokenHash, origin, createdAt, lastUsedAt } = current
      const { secretHash: _, ...metadata } = { secretHash: undefined, ...change(current) }
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
    }), clientId)
    // Existing tokens may include a scope that the client has lost.
    if (former.some((scope) => !client.scope.split(' ').includes(scope))) await this.#revoke(clientId)
    return isNew ? { client, secret } : { client }
  }

  async #remove (clientId: string): Promise<boolean> {
    const existed = await this.#clients.remove(clientId)
    await this.#revoke(clientId)
    return existed
  }
}

const needsSecret = ({ tokenEndpointAuthMethod }: ClientMetadata): boolean => tokenEndpointAuthMethod !== 'none'

function requireClient (client: OAuthClient | undefined, clientId: string): OAuthClient {
  if (!client) throw noSuchError('client', clientId)
  return client
}

/**
 * Returns the client metadata in a request body, without members that are `null`: a client sends `null` to delete a
 * member (RFC 7592, section 2.2).
 * @throws OAuthError if the body is not an object
 */
function readMetadataBody (body: unknown): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new OAuthError('invalid_client_metadata', 'The body must be a JSON object with the metadata of the client')
  }
  return withoutEmptyMembers(body)
}

import { randomBytes, randomUUID } from 'node:crypto'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { OneTimeValues } from '../../../db/ports/grants.ts'
import type { BrowserStates } from '../../../db/ports/login-states.ts'
import type { UpstreamTokens } from '../../../db/ports/upstream-tokens.ts'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import type { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import { type BearerChallenge, chooseScopes } from './challenge.ts'
import { discoverAuthorization, type AuthorizationDiscovery } from './discovery.ts'
import type { PendingLogin } from './problems.ts'
import { clientWithoutRegistration, registerGateway, type GatewayAsOAuthClient } from './registration.ts'
import { loadSdk } from './sdk.ts'
import { hashOfTicket, newTicket, storeLoginStart } from './starts.ts'
import {
  toRegistration, withReducedMetadata, type LoginWithoutTokens, type StoredRegistration, type UpstreamOAuthClient
} from './stored.ts'
import { upstreamLimits } from '../limits.ts'

/** The storage of the logins at upstream servers. */
export interface LoginStores {
  readonly grants: OneTimeValues, readonly tokens: UpstreamTokens, readonly states: BrowserStates
}

/** A server to log in at. */
export interface LoginTarget {
  /** The server's name. */
  readonly server: string
  readonly oauth: UpstreamOAuth
  /** Returns the server's URL, with its variables expanded. @throws UpstreamError */
  readonly url: () => URL
  /** Whether an admin stored the server and all addresses in its config. */
  readonly isAdminStored: boolean
  /** Whether each user logs in separately; if false, all clients share one login. */
  readonly isPerUser: boolean
}

/**
 * Dependencies of the logins at one server. The *holder* of a login is a text that identifies a user, a bearer key, or
 * all users together (`holderOf`).
 */
export interface ServerLoginDeps {
  readonly target: LoginTarget
  readonly stores: LoginStores
  /** Creates a `fetch` for requests to authorization servers. `onStatus` gets the status of each response. */
  readonly makeFetch: (onStatus?: (status: number) => void) => FetchLike
  /**
   * Returns a hash of the server's owner and addresses and of the holder's account: a login is valid only for these.
   */
  readonly binding: (holder: string) => string
  /** Returns the gateway as a client of authorization servers. */
  readonly self: () => Promise<GatewayAsOAuthClient>
  /**
   * Called once the authorization server is known, before the gateway registers there.
   * @throws UpstreamError to prevent the login
   */
  readonly beforeBegin?: (found: AuthorizationDiscovery) => Promise<void>
}

/** The reason why a holder must log in. */
export interface LoginNeed {
  readonly challenge: BearerChallenge
  /** The scopes that the login has requested before; undefined for a new login. */
  readonly former?: readonly string[]
}

/**
 * What is needed to complete an authorization request. It is stored under the hash of the request's `state` until the
 * browser returns with a response.
 */
export interface SavedFlow {
  readonly kind: 'upstream-login'
  readonly server: string
  readonly holder: string
  readonly codeVerifier: string
  readonly redirectUri: string
  /** The login, still without tokens. */
  readonly frame: LoginWithoutTokens
  /** The hash of the ticket in the login link of this login (`starts.ts`). */
  readonly start: string
  /** The issuer that the response must name (RFC 9207); undefined if none is known. */
  readonly issuer?: string
  /** Whether the authorization server announces that its responses name the issuer. */
  readonly namesIssuer: boolean
}

/** The holder name under which the gateway's registration at an authorization server is stored. */
export const registrationHolder = 'client'

/** Returns the key under which a request is stored by its `state`, distinct from keys of other one-time values. */
export const hashOfState = (state: string): string => sha256(`upstream login ${state}`)

/** How long the result of a discovery is reused, in ms. */
const discoveryTime = 10 * 60_000

/** How long an open request is assumed to be still open, in ms; after that, the storage is asked. */
const checkTime = 2_000

/** An authorization request that was begun by this process. */
interface OpenFlow extends PendingLogin {
  /** The clients that were sent the URL, to be notified when the user has logged in. */
  readonly recipients: Set<Client>
  /** The hash of the ticket in the login link. */
  readonly start: string
  /** When the request was last known to be open, in ms since the epoch. */
  checkedAt: number
}

/** The open logins at one server: finds its authorization server, registers there, and creates the URLs to open. */
export class LoginFlows {
  readonly #deps: ServerLoginDeps
  readonly #flows = new BoundedMap<string, OpenFlow>(upstreamLimits.login.flows)
  readonly #beginning = new Map<string, Promise<PendingLogin>>()
  #discovered: { readonly at: number, readonly from: string, readonly found: AuthorizationDiscovery } | undefined

  constructor (deps: ServerLoginDeps) {
    this.#deps = deps
  }

  /** Returns the open authorization request of a holder; undefined if there is none, or it has expired. */
  current (holder: string): PendingLogin | undefined {
    const flow = this.#flows.get(holder)
    return flow && Date.now() - flow.begunAt < upstreamLimits.login.flowTime ? flow : undefined
  }

  /**
   * Begins an authorization request, or returns a recent one that includes the needed scopes.
   * @throws UpstreamError with a message for the operator
   */
  async begin (holder: string, need: LoginNeed): Promise<PendingLogin> {
    const known = this.current(holder)
    const wanted = [...need.former ?? [], ...need.former === undefined ? [] : need.challenge.scopes ?? []]
    const isFresh = known && Date.now() - known.begunAt < upstreamLimits.login.flowTime / 2
    if (isFresh && wanted.every((scope) => known.scopes.includes(scope)) && await this.#isOpen(holder)) return known
    const beginning =
      this.#beginning.get(holder) ?? this.#begin(holder, need).finally(() => { this.#beginning.delete(holder) })
    this.#beginning.set(holder, beginning)
    return await beginning
  }

  /** Whether the request of a holder can still be completed. Ends the request here if another replica has ended it. */
  async #isOpen (holder: string): Promise<boolean> {
    const flow = this.#flows.get(holder)
    if (!flow || Date.now() - flow.checkedAt < checkTime) return flow !== undefined
    flow.checkedAt = Date.now()
    // While the storage is unavailable, the request is assumed to be open.
    const isThere = await this.#deps.stores.states.find(flow.start).then((state) => state !== undefined, () => true)
    if (!isThere && this.#flows.get(holder) === flow) this.end(holder)
    return isThere
  }

  /** Ends a request whose login has failed: its URL becomes invalid. @param start the hash of the request's ticket */
  async fail (holder: string, start: string): Promise<void> {
    if (this.#flows.get(holder)?.start === start) this.end(holder)
    await this.#deps.stores.states.remove(start)
  }

  /** Ends a holder's request, completed or not, and notifies the clients to which its URL was sent. */
  end (holder: string): void {
    const flow = this.#flows.get(holder)
    this.#flows.delete(holder)
    if (!flow) return
    // The server may use another authorization server by the time of the next login (MCP, SEP-2352).
    this.#discovered = undefined
    const params = JSON.stringify({ elicitationId: flow.id })
    for (const { listener } of flow.recipients) listener?.deliver('notifications/elicitation/complete', params)
  }

  /**
   * Finds the server's authorization server; the result is cached for a while.
   * @throws UpstreamError with a message for the operator
   */
  async discover ({ resourceMetadata }: BearerChallenge): Promise<AuthorizationDiscovery> {
    const { target: { url, oauth, isAdminStored }, makeFetch } = this.#deps
    const serverUrl = url()
    const from = JSON.stringify([serverUrl, resourceMetadata])
    const known = this.#discovered
    if (known?.from === from && Date.now() - known.at < discoveryTime) return known.found
    const found = await discoverAuthorization(
      { serverUrl, metadataUrl: resourceMetadata, oauth, isAdminStored }, makeFetch
    )
    this.#discovered = { at: Date.now(), from, found }
    return found
  }

  /** Forgets what is known about the authorization server, including the registration there. */
  async forget (): Promise<void> {
    this.#discovered = undefined
    const { target, stores } = this.#deps
    await stores.tokens.remove(target.server, registrationHolder)
  }

  scopesFor ({ resourceScopes, server }: AuthorizationDiscovery, { challenge, former }: LoginNeed): string[] {
    return chooseScopes({
      configured: this.#deps.target.oauth.scopes,
      challenged: challenge.scopes,
      ofResource: resourceScopes,
      ofServer: server.metadata?.scopes_supported,
      former
    })
  }

  async #begin (holder: string, need: LoginNeed): Promise<PendingLogin> {
    const { target: { server: name }, stores: { grants, states }, self: findSelf, binding, beforeBegin } = this.#deps
    const found = await this.discover(need.challenge)
    await beforeBegin?.(found)
    const self = await findSelf()
    const scopes = this.scopesFor(found, need)
    const client = await this.#client(found, scopes, self)
    const { server, resource, issuer } = found
    const state = randomBytes(32).toString('base64url')
    const { startAuthorization } = await loadSdk()
    const { authorizationUrl, codeVerifier } = await startAuthorization(server.url, {
      metadata: server.metadata,
      clientInformation: { client_id: client.id },
      redirectUrl: self.redirectUri,
      ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
      state,
      resource
    })
    const { metadata } = server
    const ticket = newTicket()
    const saved: SavedFlow = {
      kind: 'upstream-login',
      server: name,
      holder,
      codeVerifier,
      redirectUri: self.redirectUri,
      frame: {
        binding: binding(holder),
        scopes,
        server: withReducedMetadata(server),
        client,
        ...(resource === undefined ? {} : { resource })
      },
      start: hashOfTicket(ticket),
      ...(issuer === undefined ? {} : { issuer }),
      namesIssuer:
        (metadata as Record<string, unknown> | undefined)?.authorization_response_iss_parameter_supported === true
    }
    const begunAt = Date.now()
    await grants.put(hashOfState(state), randomUUID(), saved, begunAt + upstreamLimits.login.flowTime)
    const recipients = new Set<Client>()
    const addRecipient = (client: Client): void => {
      if (recipients.size < upstreamLimits.login.notified) recipients.add(client)
    }
    const start = { server: name, holder, url: authorizationUrl.href }
    await storeLoginStart(states, ticket, start, begunAt + upstreamLimits.login.flowTime)
    const url = new URL(`login/${ticket}`, self.redirectUri).href
    const flow = {
      url, id: randomUUID(), scopes, begunAt, recipients, addRecipient, start: saved.start, checkedAt: begunAt
    }
    this.#flows.setNewest(holder, flow)
    return flow
  }

  /**
   * Returns the gateway's OAuth client at an authorization server, registered if needed: also if an earlier
   * registration lacks scopes, since a client may request only those that it registered (RFC 7591, section 2). Logins
   * keep their former client. If several replicas register at the same time, one registration is kept.
   */
  async #client (
    found: AuthorizationDiscovery, scopes: readonly string[], self: GatewayAsOAuthClient
  ): Promise<UpstreamOAuthClient> {
    const { target: { server, oauth }, stores: { tokens }, binding, makeFetch } = this.#deps
    const known = clientWithoutRegistration(oauth, found, self)
    if (known) return known
    const read = async (): Promise<{ version?: string, client?: UpstreamOAuthClient, named?: readonly string[] }> => {
      const stored = await tokens.find(server, registrationHolder)
      const registration =
        stored && toRegistration(stored.value, binding(registrationHolder), found.server.url, self.redirectUri)
      return { version: stored?.version, client: registration?.client, named: registration?.scopes }
    }
    const { version, client, named = client && scopes } = await read()
    if (client && scopes.every((scope) => named?.includes(scope))) return client
    const all = [...new Set([...named ?? [], ...scopes])]
    let made: StoredRegistration
    try {
      made = await registerGateway(
        found, all, self, { binding: binding(registrationHolder), oauth, fetchFn: makeFetch() }
      )
    } catch (error) {
      // Some authorization servers also grant scopes that are not registered.
      if (client) return client
      throw error
    }
    const isKept = await tokens.swap(server, registrationHolder, version === undefined ? undefined : { version }, made)
    const kept = isKept === undefined ? (await read()).client : made.client
    if (kept) return kept
    throw new UpstreamError('unauthorized', 'its login was changed in the meantime: try again')
  }
}

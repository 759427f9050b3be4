import type { SubscriptionCredential } from '../../../db/ports/event-webhooks.ts'
import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../settings/index.ts'
import type { User } from '../../../schemas/settings.ts'
import type { InternalCredential } from './internal-credentials.ts'
import type { AccessChanges } from './access-changes.ts'
import type { AnonymousAccess } from './exposure.ts'

export interface Auth {
  /**
   * Identifies the caller on an MCP route. Returns a promise only if a step of the chain must wait.
   * @param named the username in the route's path, if any: a credential is then required, even with
   *   `routing.enableBearerAuth` off
   * @throws Unauthorized, InsufficientScope, WrongUser, TokenTwice, DataAway, StorageAway, StorageError
   */
  identifyMcpCaller: (request: FastifyRequest, named?: string) => Principal | Promise<Principal>
  /**
   * Identifies the caller on the management API.
   * @param options `query`: whether a token in the query is accepted, true by default
   * @throws Unauthorized, also for an access token of another resource · InsufficientScope for an access token whose
   *   scopes do not allow the route's effect · UntrustedOrigin for a cookie on a request that a page of another origin
   *   may have caused · TokenTwice, DataAway, StorageAway, StorageError
   */
  identifyManagementCaller: (request: FastifyRequest, options?: { query: boolean }) => Promise<Principal>
  /**
   * Identifies the caller of the metrics: by a bearer key, the command line's credential, or an access token with the
   * scope for changes in `Authorization`, or by a login token in `x-auth-token`. A token in the query, a cookie, and
   * `routing.skipAuth` do not authenticate here.
   * @throws Unauthorized · InsufficientScope
   */
  identifyMetricsCaller: (request: FastifyRequest) => Promise<Principal>
  /** Identifies the caller by an access token alone; undefined if the request has no valid one. */
  identifyTokenUser: (request: FastifyRequest) => Promise<Principal | undefined>
  /**
   * Identifies the caller where credentials are optional: an invalid credential is ignored, as is an access token for
   * another resource, or, on a route that does more than read, one without the scope for running tools.
   */
  identifyOptionally: (request: FastifyRequest) => Promise<Principal>
  /** Emits events when a principal may have lost access. */
  readonly accessChanges: AccessChanges
  /**
   * Creates a credential for MCP requests within this process. It acts as a user or a key while the user or key is
   * valid. The caller of this method must have authorized its use.
   */
  issueInternalCredential: (holder: { readonly username: string } | { readonly keyId: string }) => InternalCredential
  /**
   * Returns a reference to a principal's credential that can be stored after the request has ended. It contains no
   * secret. Returns undefined for all credentials but keys and access tokens.
   */
  lastingCredentialOf: (principal: Principal) => SubscriptionCredential | undefined
  /** Returns the current principal of a stored credential; undefined if it is no longer valid. @throws StorageError */
  principalOfCredential: (credential: SubscriptionCredential) => Promise<Principal | undefined>
  /** Returns the current access of callers without credentials. */
  anonymousAccess: () => AnonymousAccess
  /** Refuses a request whose `Origin` is not trusted. @throws ForeignOrigin */
  checkOrigin: (request: FastifyRequest) => void
  /** Whether pages of this origin may read the gateway's responses. */
  trustsOrigin: (origin: string) => boolean
  /**
   * Returns the user with this name and password, or undefined. Wrong passwords count towards the limit of failures.
   * @throws TooManyFailures, TooManyRequests, ShareError
   */
  authenticate: (request: FastifyRequest, username: string, password: string) => Promise<User | undefined>
  /**
   * Changes the password of a principal who supplies the current one.
   * @returns a new login token, since all earlier ones become invalid, and a sentence for each advisory password rule
   *   that the new password breaks
   * @throws Unauthorized for a wrong current password, Forbidden, WeakPassword, and the errors of `authenticate`
   */
  changePassword: (
    request: FastifyRequest, principal: Principal, current: string, next: string
  ) => Promise<{ token: string, warnings: string[] }>
  /** Creates a login token for a user of the current settings. It becomes invalid when the account changes. */
  createLoginToken: (user: User) => string
}

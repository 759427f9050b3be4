import type { FastifyRequest } from 'fastify'
import type { Principal } from '../../settings/index.ts'
import type { User } from '../../../schemas/settings.ts'
import type { Lent } from './lent.ts'
import type { Standings } from './standings.ts'
import type { Openness } from './warn-open.ts'

export interface Auth {
  /**
   * The caller on an MCP route. A promise only where a step of the chain has to wait.
   * @param named the user in the route's path, if any: a credential is then required, whatever the settings say
   * @throws Unauthorized, WrongUser, TokenTwice, DataAway
   */
  transport: (request: FastifyRequest, named?: string) => Principal | Promise<Principal>
  /**
   * The caller on the management API.
   * @param query false: a token in the query does not count
   * @throws Unauthorized, also for an access token of another resource · InsufficientScope for one, by the route's
   *   effect · ForeignOrigin for a cookie that a page of others may have caused to be sent
   */
  management: (request: FastifyRequest, options?: { query: boolean }) => Promise<Principal>
  /**
   * The caller who reads the metrics: a bearer key or an access token with the scope for changes, in `Authorization`,
   * or a login token in `x-auth-token`. Neither the query, nor a cookie, nor `routing.skipAuth` stands for one.
   * @throws Unauthorized · InsufficientScope
   */
  operator: (request: FastifyRequest) => Promise<Principal>
  /** The user of an access token; undefined: the request has none that is valid. */
  token: (request: FastifyRequest) => Promise<Principal | undefined>
  /**
   * The caller where credentials are optional: an invalid one is ignored, and an access token for another resource, or
   * without the scope that running needs.
   */
  optional: (request: FastifyRequest) => Promise<Principal>
  /** Emits an event when access may have ended. */
  readonly standings: Standings
  /**
   * Lends a credential for MCP within this process, in the name of a user or of a key, for as long as they stand. Who
   * asks for it decides who may have it.
   */
  lend: (whom: { readonly username: string } | { readonly keyId: string }) => Lent
  /** What callers without credentials can do now. */
  openness: () => Openness
  /** @throws ForeignOrigin */
  origin: (request: FastifyRequest) => void
  /** Whether pages of this origin may read the gateway's answers. */
  trustsOrigin: (origin: string) => boolean
  /**
   * The user with this name and password; undefined: there is none.
   * @throws TooManyFailures, TooManyRequests, ShareError
   */
  authenticate: (request: FastifyRequest, username: string, password: string) => Promise<User | undefined>
  /**
   * Changes the password of a principal who states the current one.
   * @returns a new login token, since all former ones end, and a sentence for each rule that the password breaks
   *   without being refused
   * @throws Unauthorized for a wrong current password, Forbidden, WeakPassword, and as `authenticate`
   */
  changePassword: (
    request: FastifyRequest, principal: Principal, current: string, next: string
  ) => Promise<{ token: string, warnings: string[] }>
  /** A login token for a user, as the settings have it now. It becomes invalid when the account changes. */
  login: (user: User) => string
}

import { rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import type { Client } from '../../../protocol/exchange.ts'
import { isObject } from '../../../protocol/json.ts'
import { visibleText } from '../../base/pages/index.ts'

/** A page of the gateway that a user must open, to log in at a server or to enter values for it. */
export interface UserActionPage {
  /** The URL of the page. */
  readonly url: string
  /** The id of the URL elicitation by which clients are sent to the page (`elicitationId`). */
  readonly id: string
  /** When the page was created, in ms since the epoch. */
  readonly begunAt: number
  /** Records that the URL was sent to a client, so that the client is notified when the user has completed the page. */
  readonly addRecipient: (client: Client) => void
}

/** An authorization request that waits for its user. */
export interface PendingLogin extends UserActionPage { readonly scopes: readonly string[] }

/** Who must act: a manager of the server, the user of the request, or nobody, because the request has no user. */
export type RequiredActor = 'manager' | 'user' | 'nobody'

/** The texts about one kind of action. */
interface ActionWords {
  /** What a user must do, as the end of a sentence that begins with "Server … requires you to". */
  readonly action: string
  /** The text for clients if a manager of the server must act. */
  readonly manager: string
  /** The text for clients if each user must act, but the request has no user. */
  readonly nobody: string
  /** Returns the text for the client of a user who must open a page. */
  readonly user: (url: string) => string
  /** The text for the client of a user who must act, but for whom no page could be created. */
  readonly userAlone: string
}

const words: Readonly<Record<'login' | 'values', ActionWords>> = {
  login: {
    action: 'log in',
    manager: 'it requires a login: its owner or an admin finds the address in its record (oauth.authorizationUrl)',
    nobody: 'it requires a login of each user, but this request has no user: use a key or an access token of a user',
    user: (url) => `log in there first: open ${url}`,
    userAlone: 'it requires you to log in, which is not possible now: its owner can see why'
  },
  values: {
    action: 'set your values for it',
    manager: 'it requires values from its owner',
    nobody: 'it requires values from each user, but this request has no user: use a key or an access token of a user',
    user: (url) => `set your values for it first: open ${url}`,
    userAlone: 'set your values for it first, with PUT /api/servers/:name/my-variables'
  }
}

/**
 * Thrown when a user must open a URL before the upstream can be used: to log in there, or to provide the values that
 * the server requires of each user (`userVariables`).
 */
export class UserActionRequired extends UpstreamError {
  readonly isLogin: boolean
  readonly who: RequiredActor
  /** The page to open; undefined if there is none. */
  readonly flow: UserActionPage | undefined
  readonly #words: ActionWords

  constructor (what: 'login' | 'values', who: RequiredActor, flow: UserActionPage | undefined, message: string) {
    super('unauthorized', message)
    this.name = 'UserActionRequired'
    this.isLogin = what === 'login'
    this.who = who
    this.flow = flow
    this.#words = words[what]
  }

  override get messageForClients (): string {
    const { user, userAlone } = this.#words
    if (this.who !== 'user') return this.#words[this.who]
    return this.flow ? user(this.flow.url) : userAlone
  }

  /**
   * Converts this to the error for a client. If the client supports URL elicitation and its user must open a page, the
   * error contains the elicitation (MCP 2025-11-25, Elicitation, "URL Elicitation Required Error"), and the client is
   * notified once the page is completed.
   */
  toRpcError (server: string, client: Client | undefined): RpcError {
    const name = JSON.stringify(server)
    const canOpen = isObject(client?.capabilities.elicitation) && isObject(client.capabilities.elicitation.url)
    const { flow } = this
    if (this.who !== 'user' || !flow || !client || !canOpen) {
      return new RpcError(rpcCode.unavailable, `Server ${name} is not connected: ${this.messageForClients}`,
        'not-connected')
    }
    flow.addRecipient(client)
    const message = `Server ${name} requires you to ${this.#words.action}`
    const data = { elicitations: [{ mode: 'url', elicitationId: flow.id, url: flow.url, message }] }
    const text = JSON.stringify({ code: rpcCode.urlElicitationRequired, message, data })
    return new RpcError(rpcCode.urlElicitationRequired, message, 'not-connected', text)
  }
}

/** An OAuth error thrown by the SDK. */
interface OAuthFailure extends Error { readonly errorCode: string }

const isOAuthFailure = (error: unknown): error is OAuthFailure =>
  error instanceof Error && 'errorCode' in error && typeof error.errorCode === 'string'

/** Returns the error code that an authorization server sent (RFC 6749, section 5.2); undefined for other errors. */
export const oauthErrorCodeOf = (error: unknown): string | undefined =>
  isOAuthFailure(error) ? error.errorCode : undefined

/** OAuth error codes after which a request may succeed later. */
const temporaryCodes: ReadonlySet<string> = new Set(['temporarily_unavailable', 'too_many_requests'])

/**
 * Whether an error shows that the authorization server refuses a refresh token. RFC 6749, section 5.2 requires the code
 * `invalid_grant` with status 400, but some servers send other codes, no code, or the status 200 or 401.
 */
export const isRefreshRefused = (error: unknown, status: number): boolean => isOAuthFailure(error) &&
  (error.errorCode === 'invalid_grant' || ([200, 400, 401].includes(status) && !temporaryCodes.has(error.errorCode)))

/**
 * Converts the failure of a request to an authorization server to an error with a message for the operator. The message
 * quotes only OAuth errors of the response, without control characters.
 * @param doing the action that failed, such as `the registration`
 */
export function authorizationFailure (error: unknown, doing: string): UpstreamError {
  if (error instanceof UpstreamError) return error
  if (!isOAuthFailure(error)) {
    return new UpstreamError('unauthorized', `${doing} failed: the response of the authorization server is not usable`)
  }
  // The SDK's error quotes the body of a response that is not an OAuth error.
  const [, status] = /^HTTP (\d{3}): /.exec(error.message) ?? []
  if (status !== undefined) {
    return new UpstreamError('unauthorized', `${doing} failed: the authorization server answered HTTP ${status}`)
  }
  const description = visibleText(error.message, 300)
  const why = description === '' ? error.errorCode : `${error.errorCode}: ${description}`
  return new UpstreamError('unauthorized', `${doing} failed: the authorization server answered ${why}`)
}

/**
 * Returns the text of the page about a login that an authorization server refused. Of what it answered, only an error
 * code is shown: other texts could be instructions to the user, on a page of the gateway.
 */
export const refusalText = (server: string, code = ''): string =>
  `The authorization server of ${JSON.stringify(server)} answered ` +
  `${/^[a-z_]{1,40}$/.test(code) ? code : 'without a code'}. The log of the gateway has the whole answer.`

/** The outcome of an authorization request, shown to the user in the browser. */
export interface LoginOutcome {
  readonly ok: boolean
  readonly title: string
  readonly text: string
  /** Why an authorization server refused the login, in its own words, which are only for the log. */
  readonly problem?: string | undefined
  /** The stored login, if `ok`. `whose`: for whom it is used, in words; `user`: the user, if a single one holds it. */
  readonly login?: { readonly server: string, readonly whose: string, readonly user?: string }
}

export const failedLogin = (title: string, text: string): LoginOutcome => ({ ok: false, title, text })

import type { HttpAnswer } from './http-answer.ts'

/** An answer that says that other credentials are needed: HTTP 401 or 403 (RFC 9110 §11, RFC 6750 §3). */
export interface Challenge {
  readonly status: 401 | 403
  /** The value of `WWW-Authenticate`. */
  readonly wwwAuthenticate: string | undefined
  /** The value of `Authorization` that the request had; undefined: none. */
  readonly sent: string | undefined
  /** The request was sent again already because of such an answer. */
  readonly again: boolean
}

/**
 * Where a transport gets the header `Authorization` of its requests from. The transport asks before each request and
 * reports refusals; how the header comes about is not its concern.
 */
export interface AuthorizationSource {
  /**
   * The value for the next request; undefined: it is sent without. A promise where it has to be got first.
   * Rejects with UpstreamError when it cannot be got: the request is not sent.
   */
  header: () => string | undefined | Promise<string | undefined>
  /**
   * A request was refused, so it did not run.
   * @returns whether it is to be sent again, with the header of now
   * Rejects with UpstreamError, which says what is needed: the request fails with it.
   */
  refused: (challenge: Challenge) => Promise<boolean>
}

/**
 * The challenge in an answer; undefined: it is none. A 403 is one only if it names a scope (RFC 6750 §3.1,
 * `insufficient_scope`).
 */
export function bearerChallenge (
  status: number,
  wwwAuthenticate: string | undefined,
  sent: string | undefined,
  again: boolean
): Challenge | undefined {
  if (status === 401) return { status, wwwAuthenticate, sent, again }
  const isScope = status === 403 && /\binsufficient_scope\b/.test(wwwAuthenticate ?? '')
  return isScope ? { status: 403, wwwAuthenticate, sent, again } : undefined
}

/**
 * Sends a request once the value of its header `Authorization` is known: at once, where it is. The answer fails when it
 * cannot be got.
 * @param send called with the value; undefined: the request has none
 */
export function authorized (
  authorization: AuthorizationSource | undefined,
  answer: HttpAnswer,
  send: (value: string | undefined) => void
): void {
  const value = authorization?.header()
  if (value instanceof Promise) value.then(send, (error: Error) => { answer.onResponseError(undefined, error) })
  else send(value)
}

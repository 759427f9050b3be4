import type { HttpAnswerReader } from './http-answer.ts'

/** An answer that requests other credentials: HTTP 401 or 403 (RFC 9110, section 11; RFC 6750, section 3). */
export interface Challenge {
  readonly status: 401 | 403
  readonly wwwAuthenticate: string | undefined
  /** The request's `Authorization` header; undefined if it had none. */
  readonly sentAuthorization: string | undefined
  /** Whether the refused request had itself been sent again after a challenge. */
  readonly isRetry: boolean
}

/**
 * Supplies the `Authorization` header of a transport's requests. The transport asks for it before each request, and
 * reports refusals.
 */
export interface AuthorizationSource {
  /**
   * Returns the header for the next request, or a promise if it must be obtained first; undefined if there is none. If
   * the header cannot be obtained, the promise rejects with UpstreamError, and the request is not sent.
   */
  header: () => string | undefined | Promise<string | undefined>
  /**
   * Called when a request was refused, and so did not run.
   * @returns whether to send the request again, with the current header
   * @throws UpstreamError with which the request fails; its message says what is needed
   */
  refused: (challenge: Challenge) => Promise<boolean>
}

/**
 * Reads the challenge in an answer: a 401, or a 403 with `insufficient_scope` (RFC 6750, section 3.1); undefined for
 * other answers.
 */
export function readBearerChallenge (
  status: number,
  wwwAuthenticate: string | undefined,
  sentAuthorization: string | undefined,
  isRetry: boolean
): Challenge | undefined {
  if (status === 401) return { status, wwwAuthenticate, sentAuthorization, isRetry }
  const needsScope = status === 403 && /\binsufficient_scope\b/.test(wwwAuthenticate ?? '')
  return needsScope ? { status: 403, wwwAuthenticate, sentAuthorization, isRetry } : undefined
}

/**
 * Sends a request as soon as its `Authorization` header is known. The answer fails if the header cannot be obtained.
 * @param send called with the header, or with undefined if there is none
 */
export function sendWithAuthorization (
  authorization: AuthorizationSource | undefined,
  answer: HttpAnswerReader,
  send: (value: string | undefined) => void
): void {
  const value = authorization?.header()
  if (value instanceof Promise) value.then(send, (error: Error) => { answer.onResponseError(undefined, error) })
  else send(value)
}

import type { AuthorizationSource } from './authorization.ts'
import type { HttpAnswer } from './http-answer.ts'

/**
 * Sends a request once the value of its header `Authorization` is known: at once, where it is. The answer fails when it cannot be got.
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

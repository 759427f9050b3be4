import type { Headers } from './exchange.ts'

/** A copy of a request's headers without some of them. @param names in lower case */
export function withoutHeaders (headers: Headers, names: readonly string[]): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

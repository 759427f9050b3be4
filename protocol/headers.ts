import type { Headers } from './exchange.ts'

/** A copy of headers without those of the given names. @param names in lower case */
export function withoutHeaders (headers: Headers, names: readonly string[]): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))
}

import type { IncomingMessage } from 'node:http'

/**
 * Takes a request out of Node's check for slow requests (`requestTimeout`), which has one time for all. Whoever calls this bounds the time
 * itself. Node has no interface for that: the parser of the connection leaves the list that is checked, and is back on it with the next
 * request. Where a later Node has it no more, the usual time holds.
 */
export function mayBeSlow ({ socket }: IncomingMessage): void {
  const { parser } = socket as { parser?: { remove?: unknown } | null }
  if (typeof parser?.remove === 'function') parser.remove()
}

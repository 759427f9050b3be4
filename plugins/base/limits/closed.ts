import type { ServerResponse } from 'node:http'

/**
 * Runs a function when a response is closed; on the next tick if it already is. A client may disconnect while a hook
 * waits, for example for the check of a credential, and `close` is not emitted again.
 */
export function onceClosed (raw: ServerResponse, run: () => void): void {
  if (raw.closed) process.nextTick(run)
  else raw.once('close', run)
}

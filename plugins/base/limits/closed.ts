import type { ServerResponse } from 'node:http'

/**
 * Runs a function when a response is closed, or on the next tick if it is already closed: if the client disconnected
 * while a hook waited, for example for the check of a credential, `close` is not emitted again.
 */
export function onceClosed (raw: ServerResponse, run: () => void): void {
  if (raw.closed) process.nextTick(run)
  else raw.once('close', run)
}

import { UpstreamError } from './errors.ts'
import type { Peer } from './peer.ts'

/** Max time that a connection attempt counts as dialling, in ms: beyond it, the next upstream may dial. */
const dialTime = 1_000

/**
 * Opens the connection of a peer.
 * @param dialled called when the process is spawned or the socket requested
 * @param timeout in ms
 * @throws UpstreamError
 */
export async function startPeer (peer: Peer, dialled: () => void, timeout: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  // Whoever dials longer than this lets the next upstream dial. The transport says when it is done, at its first request perhaps.
  setTimeout(dialled, dialTime).unref()
  try {
    const late = new Promise<never>((_resolve, reject) => {
      const message = `it did not connect within ${timeout / 1_000} s`
      const fail = (): void => { reject(new UpstreamError('timeout', message, { isPublic: true })) }
      timer = setTimeout(fail, timeout)
    })
    await Promise.race([peer.start(dialled), late])
  } finally {
    clearTimeout(timer)
  }
}

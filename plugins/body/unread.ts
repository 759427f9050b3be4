import type { FastifyRequest } from 'fastify'

/**
 * Ends a request that was answered before its body had arrived: some of the rest is read and thrown away, so that the client gets to see
 * the answer, then the connection is closed. To be called once the answer was sent.
 * @param bytes max bytes to read
 * @param time max time for that, in ms
 */
export function endUnread ({ raw }: FastifyRequest, bytes: number, time: number): void {
  if (raw.complete || raw.destroyed) return
  let left = bytes
  const end = setTimeout(() => { if (!raw.complete) raw.destroy() }, time)
  raw.once('end', () => { clearTimeout(end) })
  raw.once('close', () => { clearTimeout(end) })
  raw.unpipe()
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length
    // What the client sends from now on stays in its own buffers.
    if (left < 0) raw.pause()
  })
  raw.resume()
}

import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { Unread } from './unread.ts'

/**
 * A large reply, as a stream for Fastify. Its chunks may be shared with other replies, and are handed over one after the other, each when
 * the client has read what was before it. All of it counts as unread in the owner's share, from the beginning.
 */
export function chunkedReply (raw: ServerResponse, chunks: readonly Buffer[], owner: string): Readable {
  let rest = lengthOf(chunks)
  let at = 0
  const unread = new Unread(raw, undefined, () => rest, { owner, cost: 1 })
  unread.add()
  return new Readable({
    highWaterMark: 1,
    read () {
      const chunk = chunks[at++]
      rest -= chunk?.length ?? 0
      this.push(chunk ?? null)
    }
  })
}

/** The length of several chunks together, in bytes. */
export const lengthOf = (chunks: readonly Buffer[]): number => chunks.reduce((sum, { length }) => sum + length, 0)

import type { MessagePace, Unasked } from '../../../protocol/transports/valve.ts'
import { limits } from './limits.ts'
import { TokenBucket } from './token-bucket.ts'

const bucket = new TokenBucket(limits.unasked, { maxKeys: limits.unasked.owners })
let servers = 0

/** The pace of a server: one for all servers of a user, and one for each server of an admin. */
export function paceOf (user: string | undefined): MessagePace {
  const key = user === undefined ? `server ${++servers}` : `user ${user}`
  return {
    count: (what: Unasked) => { bucket.spend(key, limits.unasked.cost[what]) },
    wait: () => bucket.wait(key)
  }
}

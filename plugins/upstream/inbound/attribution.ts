/** A message that an upstream sent on a link, with the facts that decide about its recipient. */
export interface InboundMessage<Call, Owner> {
  /** The call on whose stream it came, if the transport knows; `over`: that call, or a request of the gateway's own, is answered. */
  origin: Call | 'over' | undefined
  /** The calls open on the link, oldest first. */
  open: readonly Call[]
  ownerOf: (call: Call) => string
  /** Whether a call waits for its client's answer to a question already. Left out: none does. */
  isAsked?: (call: Call) => boolean
  /** The owners of running tasks on the link: the message may be about one of these tasks as well as about a call. */
  workers: readonly string[]
  /** The session that the link belongs to, if it belongs to a single one. */
  owner: Owner | undefined
}

export type Attribution<Call, Owner> =
  | { kind: 'call', call: Call }
  | { kind: 'owner', owner: Owner }
  /** It belongs to a call that is over. */
  | { kind: 'over' }
  /** No call is open on this link. */
  | { kind: 'idle' }
  /** Calls of several clients are open, and the recipient cannot be determined. */
  | { kind: 'contested' }

/**
 * The recipient of a question or notification of an upstream. In this order: the call on whose stream it came, and nobody if that call is
 * over; the latest call, if all calls open on the link are of one client and no tasks of others run there, and best one that does not wait
 * for an answer already; the session that owns the link; else nobody. It never guesses between two clients.
 */
export function attribute<Call extends object, Owner> ({
  origin,
  open,
  ownerOf,
  isAsked = () => false,
  workers,
  owner
}: InboundMessage<Call, Owner>): Attribution<Call, Owner> {
  if (origin === 'over') return { kind: 'over' }
  if (origin !== undefined) return { kind: 'call', call: origin }
  const latest = open.at(-1)
  if (latest !== undefined) {
    const client = ownerOf(latest)
    if (open.every((call) => ownerOf(call) === client) && workers.every((worker) => worker === client)) {
      return { kind: 'call', call: open.findLast((call) => !isAsked(call)) ?? latest }
    }
  }
  if (owner !== undefined) return { kind: 'owner', owner }
  return { kind: latest === undefined ? 'idle' : 'contested' }
}

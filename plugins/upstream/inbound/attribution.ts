/** What is known about something that an upstream sent on a link. */
export interface InboundMessage<Call, Owner> {
  /** The call on whose own stream it came, if the transport tells; `over`: such a call, or request of ours, that is answered. */
  origin: Call | 'over' | undefined
  /** The calls open on the link, oldest first. */
  open: readonly Call[]
  ownerOf: (call: Call) => string
  /** Whose tasks are under way on the link: something may be about one of them as well as about a call. */
  workers: readonly string[]
  /** The session that the link is for, if it is for one. */
  owner: Owner | undefined
}

export type Target<Call, Owner> =
  | { kind: 'call', call: Call }
  | { kind: 'owner', owner: Owner }
  /** It belongs to a call that is over. */
  | { kind: 'over' }
  /** Nobody is waiting on this link. */
  | { kind: 'idle' }
  /** Several are, and nothing says whom it is for. */
  | { kind: 'contested' }

/**
 * Whom a question or a message of an upstream is for, in this order: the call on whose stream it came, and nobody else if it is over; the
 * owner of the only
 * calls open on the link, unless tasks of others are under way there; the session that owns the link; else nobody. It never guesses between
 * two.
 */
export function attribute<Call extends object, Owner> ({
  origin,
  open,
  ownerOf,
  workers,
  owner
}: InboundMessage<Call, Owner>): Target<Call, Owner> {
  if (origin === 'over') return { kind: 'over' }
  if (origin !== undefined) return { kind: 'call', call: origin }
  const latest = open.at(-1)
  if (latest !== undefined) {
    const client = ownerOf(latest)
    if (open.every((call) => ownerOf(call) === client) && workers.every((worker) => worker === client)) {
      return { kind: 'call', call: latest }
    }
  }
  if (owner !== undefined) return { kind: 'owner', owner }
  return { kind: latest === undefined ? 'idle' : 'contested' }
}

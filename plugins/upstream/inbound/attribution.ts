/** The facts that determine which client gets a message of an upstream. */
export interface RecipientFacts<Call, Owner> {
  /**
   * The call on whose HTTP stream the message arrived; `over` if it was the stream of a call that has been answered, or
   * of a request of the gateway; undefined if the stream is unknown.
   */
  origin: Call | 'over' | undefined
  /** The open calls on the link, oldest first. */
  open: readonly Call[]
  /** Identifies the client that made a call. */
  ownerOf: (call: Call) => string
  /** Whether a call waits for its client's answer to a question of the upstream. Default: no call does. */
  isAsked?: (call: Call) => boolean
  /** The clients (as in `ownerOf`) whose tasks run on the link: the message may be about one of these tasks. */
  taskOwners: readonly string[]
  /** The client that has the link for itself; undefined if the link may serve several clients. */
  owner: Owner | undefined
}

/**
 * The recipient of a message, or the reason why it has none: `over` (the call that it belongs to has ended), `idle` (no
 * call is open), or `contested` (calls or tasks of several clients are open).
 */
export type MessageRecipient<Call, Owner> =
  | { kind: 'call', call: Call }
  | { kind: 'owner', owner: Owner }
  | { kind: 'over' }
  | { kind: 'idle' }
  | { kind: 'contested' }

/**
 * Finds the recipient of a question or notification of an upstream. If the call on whose stream it arrived is known,
 * the recipient is that call, or nobody if that call has ended. Otherwise, if calls are open, and all open calls and
 * running tasks on the link belong to one client, the recipient is that client's latest open call, preferably one that
 * does not wait for the client's answer. Otherwise the recipient is the client that has the link for itself, or nobody:
 * no guess is made between clients.
 */
export function findMessageRecipient<Call extends object, Owner> ({
  origin,
  open,
  ownerOf,
  isAsked = () => false,
  taskOwners,
  owner
}: RecipientFacts<Call, Owner>): MessageRecipient<Call, Owner> {
  if (origin === 'over') return { kind: 'over' }
  if (origin !== undefined) return { kind: 'call', call: origin }
  const latest = open.at(-1)
  if (latest !== undefined) {
    const client = ownerOf(latest)
    if (open.every((call) => ownerOf(call) === client) && taskOwners.every((taskOwner) => taskOwner === client)) {
      return { kind: 'call', call: open.findLast((call) => !isAsked(call)) ?? latest }
    }
  }
  if (owner !== undefined) return { kind: 'owner', owner }
  return { kind: latest === undefined ? 'idle' : 'contested' }
}

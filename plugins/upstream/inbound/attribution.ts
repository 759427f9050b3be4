/** A message of an upstream on a link, with the facts that determine its recipient. */
export interface RecipientFacts<Call, Owner> {
  /**
   * The call on whose stream the message arrived, if known; `over`: that call, or a request of the gateway, has already
   * been answered.
   */
  origin: Call | 'over' | undefined
  /** The calls open on the link, oldest first. */
  open: readonly Call[]
  ownerOf: (call: Call) => string
  /** Whether a call waits for its client's answer to a question. Default: none does. */
  isAsked?: (call: Call) => boolean
  /** The owners of the tasks that run on the link: the message may be about one of these tasks. */
  taskOwners: readonly string[]
  /** The only session that uses the link, if there is just one. */
  owner: Owner | undefined
}

/** The recipient of a message, or the reason why it has none. */
export type MessageRecipient<Call, Owner> =
  | { kind: 'call', call: Call }
  | { kind: 'owner', owner: Owner }
  | { kind: 'over' }
  | { kind: 'idle' }
  // Calls of several clients are open.
  | { kind: 'contested' }

/**
 * Finds the recipient of a question or notification: the call on whose stream it arrived, or nobody if that call has
 * ended; otherwise the latest call, if all open calls belong to one client and no tasks of other clients run there,
 * preferably a call that does not wait for its client's answer; otherwise the session that owns the link; otherwise
 * nobody. It never guesses between two clients.
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

import { code, RpcError } from '../../protocol/errors.ts'
import type { Sealer } from '../base/secrets/index.ts'
import { routeOf, type View } from '../settings/index.ts'

/** An event type of a server. */
export interface EventTarget {
  readonly provider: string
  /** Identifies the server (`serverIdentity`): another one may have its name when a cursor comes back. */
  readonly server: string
  /** The event type by its own name. */
  readonly key: string
}

/** Max length of a cursor that is opened, in characters. */
const maxCursor = 16 * 1024

/**
 * The cursors of events that clients keep: those of servers, sealed for the principal, the route and the event type.
 * They open on every replica, and after a restart.
 */
export class EventCursors {
  readonly #sealer: Sealer

  constructor (sealer: Sealer) {
    this.#sealer = sealer
  }

  seal (view: View, { server, key }: EventTarget, cursor: string): string {
    return this.#sealer.seal(JSON.stringify([server, key, cursor]), placeOf(view))
  }

  /** The server's cursor in params, as JSON text. @throws RpcError -32602 for any that was not sealed for this use */
  open (view: View, { server, key }: EventTarget, sealed: unknown): string {
    if ((sealed ?? null) === null) return 'null'
    if (typeof sealed === 'string' && sealed.length <= maxCursor) {
      const [ofServer, ofKey, cursor] = this.#unsealed(view, sealed)
      if (ofServer === server && ofKey === key && cursor !== undefined) return JSON.stringify(cursor)
    }
    throw new RpcError(code.invalidParams, 'Invalid params: the cursor is not one of this event type on this route; ' +
      'begin without one')
  }

  #unsealed (view: View, sealed: string): string[] {
    try {
      return JSON.parse(this.#sealer.unseal(sealed, placeOf(view))) as string[]
    } catch {
      return []
    }
  }
}

const placeOf = (view: View): string => JSON.stringify(['event', view.principal.key, routeOf(view)])

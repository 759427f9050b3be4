import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Sealer } from '../base/secrets/index.ts'
import { routeKeyOf, type View } from '../settings/index.ts'

/** An event type of a server. */
export interface EventTypeTarget {
  readonly provider: string
  /** Identifies the server (`serverFingerprint`), since another server may have its name later. */
  readonly server: string
  /** The server's name for the event type. */
  readonly key: string
}

/** Max length of an accepted cursor, in characters. */
const maxCursor = 16 * 1024

/**
 * Encrypts the event cursors of servers for clients. A cursor is valid for one principal, route and event type. If the
 * sealer's key is stored, cursors can be decrypted on every replica, and after a restart.
 */
export class EventCursors {
  readonly #sealer: Sealer

  constructor (sealer: Sealer) {
    this.#sealer = sealer
  }

  seal (view: View, { server, key }: EventTypeTarget, cursor: string): string {
    return this.#sealer.seal(JSON.stringify([server, key, cursor]), placeOf(view))
  }

  /**
   * Decrypts a client's cursor.
   * @param sealed undefined or null: the client sent no cursor
   * @returns the server's cursor, as JSON text; `null` for none
   * @throws RpcError -32602 if the cursor is invalid, or is for another principal, route or event type
   */
  open (view: View, { server, key }: EventTypeTarget, sealed: unknown): string {
    if ((sealed ?? null) === null) return 'null'
    if (typeof sealed === 'string' && sealed.length <= maxCursor) {
      const [ofServer, ofKey, cursor] = this.#unsealed(view, sealed)
      if (ofServer === server && ofKey === key && cursor !== undefined) return JSON.stringify(cursor)
    }
    throw new RpcError(
      rpcCode.invalidParams, 'Invalid params: the cursor does not belong to this event type on this route; omit it'
    )
  }

  #unsealed (view: View, sealed: string): string[] {
    try {
      return JSON.parse(this.#sealer.unseal(sealed, placeOf(view))) as string[]
    } catch {
      return []
    }
  }
}

const placeOf = (view: View): string => JSON.stringify(['event', view.principal.key, routeKeyOf(view)])

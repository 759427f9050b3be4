import { EventEmitter } from 'node:events'
import type { Principal } from '../../settings/index.ts'

/** Returns the current state of a principal; undefined if its credential is no longer valid. */
export type FindCurrentPrincipal = (principal: Principal) => Principal | undefined

/**
 * Announces possible losses of access. Emits `changed` after each event that may end access: a change of the settings,
 * or the revocation or final expiry of a credential. The code that holds sessions and running calls then checks their
 * principals again.
 * Emits `expired` with the id of an expired credential that its client can renew. Until the client has renewed it,
 * nothing more is sent to the client.
 */
export class AccessChanges extends EventEmitter<{ changed: [FindCurrentPrincipal], expired: [id: string] }> {
  readonly #current: FindCurrentPrincipal

  /** @param current returns the state of a principal by the current settings; undefined if it has lost access */
  constructor (current: FindCurrentPrincipal) {
    super()
    this.#current = current
  }

  /** Emits `changed` after an event that may have ended the access of any principal. */
  announceChange (): void { this.emit('changed', this.#current) }

  /**
   * Emits `changed` after a credential that is not part of the settings, such as a token, was revoked.
   * @param id the id in `Principal.credential`
   */
  announceRevocation (id: string): void {
    this.emit('changed', (principal) => principal.credential?.id === id ? undefined : this.#current(principal))
  }

  /** Emits `expired` for a credential that its client can renew. @param id the id in `Principal.credential` */
  announceExpiry (id: string): void { this.emit('expired', id) }
}

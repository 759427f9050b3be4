import { EventEmitter } from 'node:events'
import type { Principal } from '../access/view.ts'

/** Gives a principal as it is now; undefined: its credential does not count any more. */
export type StandingOf = (principal: Principal) => Principal | undefined

/**
 * The one event by which access ends: `changed`, after each change of the settings and each revocation of a credential. Whoever holds
 * something for a principal (a session, a call in flight) asks for its standing then.
 */
export class Standings extends EventEmitter<{ changed: [StandingOf] }> {
  readonly #current: StandingOf

  /** @param current the standing of a principal by the current settings */
  constructor (current: StandingOf) {
    super()
    this.#current = current
  }

  /** The settings changed. */
  settingsChanged (): void { this.emit('changed', this.#current) }

  /** A credential was revoked that the settings say nothing of, such as a token. @param id as in `Principal.credential` */
  revoke (id: string): void {
    this.emit('changed', (principal) => principal.credential?.id === id ? undefined : this.#current(principal))
  }
}

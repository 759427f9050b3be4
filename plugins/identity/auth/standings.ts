import { EventEmitter } from 'node:events'
import type { Principal } from '../../settings/index.ts'

/** Returns the current state of a principal; undefined: its credential is no longer valid. */
export type StandingOf = (principal: Principal) => Principal | undefined

/**
 * Announces possible losses of access. Emits `changed` after each change of the settings and each revocation of a
 * credential, which are the only events that end access; owners of sessions and running calls then re-check their
 * principals. Emits `expired` with the id of a credential that its client can renew: until then, nothing more is sent
 * to the client.
 */
export class Standings extends EventEmitter<{ changed: [StandingOf], expired: [id: string] }> {
  readonly #current: StandingOf

  /** @param current evaluates a principal against the current settings */
  constructor (current: StandingOf) {
    super()
    this.#current = current
  }

  /** Emits `changed` after a change of the settings. */
  settingsChanged (): void { this.emit('changed', this.#current) }

  /** Revokes a credential that is not part of the settings, such as a token. @param id as in `Principal.credential` */
  revoke (id: string): void {
    this.emit('changed', (principal) => principal.credential?.id === id ? undefined : this.#current(principal))
  }

  /** @param id as in `Principal.credential` */
  expire (id: string): void { this.emit('expired', id) }
}

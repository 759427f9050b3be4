import { EventEmitter } from 'node:events'
import type { Principal } from '../../settings/index.ts'

/** The current state of a principal; undefined when its credential is not valid any more. */
export type StandingOf = (principal: Principal) => Principal | undefined

/**
 * Emits `changed` after each change of the settings and each revocation of a credential: the only events that end
 * access. Owners of sessions and calls in flight then check the standing of their principals. Emits `expired` with the
 * id of a credential that its client may renew: nothing more is sent to the client until then.
 */
export class Standings extends EventEmitter<{ changed: [StandingOf], expired: [id: string] }> {
  readonly #current: StandingOf

  /** @param current the standing of a principal by the current settings */
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

import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import type { LegacyVersion } from '../../../protocol/legacy/versions.ts'
import { chargedOwnerOf, type View } from '../../settings/index.ts'
import { Shares } from '../../base/limits/index.ts'
import { Session, type SessionReservation } from './session.ts'
import { downstreamLimits } from '../limits.ts'
import { identityLimits } from '../../identity/index.ts'

/**
 * All legacy sessions, found by principal, route and id. An id is no credential: it is unknown to other principals. Ids
 * made by the gateway are unique. Ids chosen by clients (rebuild) may belong to several sessions.
 */
export class Sessions extends EventEmitter<{ ended: [Session] }> {
  readonly #sessions = new Set<Session>()
  readonly #shares = new Shares(downstreamLimits.sessions, 'sessions')
  readonly #byId = new Map<string, Session[]>()
  /** Sessions rebuilt in the current minute, by principal. */
  readonly #rebuilds = new Map<string, number>()
  readonly #sweeper: NodeJS.Timeout

  constructor () {
    super()
    this.#sweeper = setInterval(() => { this.#sweep() }, 60_000).unref()
  }

  get size (): number { return this.#sessions.size }

  [Symbol.iterator] (): IterableIterator<Session> { return this.#sessions.values() }

  find (view: View, id: string): Session | undefined {
    const session =
      this.#byId.get(id)?.find((each) => each.view.key === view.key && each.view.principal.key === view.principal.key)
    if (session) session.lastUsed = Date.now()
    return session
  }

  /** Takes a place for a session of this caller. Release it if no session begins. @throws ShareError */
  reserve ({ principal }: View, address: string): SessionReservation {
    const owner = chargedOwnerOf(principal, address)
    return { owner, release: this.#shares.take(owner) }
  }

  /** Begins a session, for `initialize`. It holds the place until it ends. */
  begin (view: View, version: LegacyVersion, capabilities: ClientCapabilities, place: SessionReservation): Session {
    return this.#add(new Session(randomBytes(32).toString('base64url'), view, version, capabilities, place))
  }

  /**
   * Begins a session under an unknown id that the client sent. The client's capabilities are unknown.
   * @returns undefined for an invalid id, or after too many rebuilds
   * @throws ShareError
   */
  rebuild (view: View, id: string, version: LegacyVersion, address: string): Session | undefined {
    const count = this.#rebuilds.get(view.principal.key) ?? 0
    if (count >= downstreamLimits.rebuildsPerMinute || !/^[\x21-\x7e]{1,128}$/.test(id)) return undefined
    this.#rebuilds.set(view.principal.key, count + 1)
    return this.#add(new Session(id, view, version, {}, this.reserve(view, address)))
  }

  end (session: Session, reason: string): void {
    if (!this.#sessions.delete(session)) return
    const others = this.#byId.get(session.sessionId)?.filter((each) => each !== session) ?? []
    if (others.length > 0) this.#byId.set(session.sessionId, others)
    else this.#byId.delete(session.sessionId)
    session.end(reason)
    session.place.release()
    this.emit('ended', session)
  }

  close (): void {
    clearInterval(this.#sweeper)
    for (const session of this.#sessions.values()) this.end(session, 'the gateway is shutting down')
  }

  #add (session: Session): Session {
    this.#sessions.add(session)
    this.#byId.set(session.sessionId, [...this.#byId.get(session.sessionId) ?? [], session])
    return session
  }

  #sweep (): void {
    this.#rebuilds.clear()
    for (const session of this.#sessions.values()) {
      if (!session.isBusy && Date.now() - session.lastUsed > identityLimits.sessionIdle) {
        this
          .end(session, 'the session was idle for too long')
      } else session.streams.expire()
    }
  }
}

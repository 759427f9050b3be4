import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { ClientCapabilities } from '../../protocol/legacy/capabilities.ts'
import type { LegacyVersion } from '../../protocol/legacy/versions.ts'
import type { View } from '../gateway/view.ts'
import { limits } from '../limits/index.ts'
import { Session } from './session.ts'

/** All legacy sessions, each under (principal, route, id): an id is never a credential, and a stranger's is simply unknown. */
export class Sessions extends EventEmitter<{ ended: [Session] }> {
  readonly #sessions = new Map<string, Session>()
  readonly #rebuilds = new Map<string, number>()
  readonly #sweeper: NodeJS.Timeout

  constructor () {
    super()
    this.#sweeper = setInterval(() => { this.#sweep() }, 60_000).unref()
  }

  get size (): number { return this.#sessions.size }
  get full (): boolean { return this.#sessions.size >= limits.sessions }

  [Symbol.iterator] (): IterableIterator<Session> { return this.#sessions.values() }

  find (view: View, id: string): Session | undefined {
    const session = this.#sessions.get(keyOf(view, id))
    if (session) session.lastUsed = Date.now()
    return session
  }

  /** A session that an `initialize` began. */
  begin (view: View, version: LegacyVersion, capabilities: ClientCapabilities): Session {
    return this.#add(new Session(randomBytes(32).toString('base64url'), view, version, capabilities))
  }

  /** A session under an id that we do not know (any more). What the client could do is forgotten. Undefined: not now, or not this id. */
  rebuild (view: View, id: string, version: LegacyVersion): Session | undefined {
    const count = this.#rebuilds.get(view.principal.key) ?? 0
    if (this.full || count >= limits.rebuildsPerMinute || !/^[\x21-\x7e]{1,128}$/.test(id)) return undefined
    this.#rebuilds.set(view.principal.key, count + 1)
    return this.#add(new Session(id, view, version, {}))
  }

  end (session: Session, reason: string): void {
    if (!this.#sessions.delete(keyOf(session.view, session.id))) return
    session.end(reason)
    this.emit('ended', session)
  }

  close (): void {
    clearInterval(this.#sweeper)
    for (const session of this.#sessions.values()) this.end(session, 'the gateway is shutting down')
  }

  #add (session: Session): Session {
    this.#sessions.set(keyOf(session.view, session.id), session)
    return session
  }

  #sweep (): void {
    this.#rebuilds.clear()
    for (const session of this.#sessions.values()) {
      if (!session.busy && Date.now() - session.lastUsed > limits.sessionIdle) this.end(session, 'the session was idle for too long')
    }
  }
}

const keyOf = ({ principal, key }: View, id: string): string => `${principal.key}\n${key}\n${id}`

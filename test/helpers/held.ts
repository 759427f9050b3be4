// Sessions of legacy clients, and answers to them, that are held in the hand: without a network, and under a clock that a test moves.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { mock } from 'node:test'
import { makeView, type Principal, type ViewScope, type View } from '../../plugins/settings/access/view.ts'
import { EventStream } from '../../plugins/downstream/event-stream.ts'
import type { Session } from '../../plugins/downstream/legacy/session.ts'
import { Sessions } from '../../plugins/downstream/legacy/sessions.ts'
import type { ClientCapabilities } from '../../protocol/capabilities.ts'
import type { LegacyVersion } from '../../protocol/legacy/versions.ts'
import { mockTimers } from './clock.ts'
import type { Cleanup } from './hub.ts'

const principal = (key: string): Principal => ({ key, kind: 'system-key', user: key, isAdmin: true })
const route = (name?: string): ViewScope => name === undefined ? { kind: 'global' } : { kind: 'server', name }
export const view = (key: string, name?: string): View => makeView(principal(key), route(name))
export const minute = 60_000

/** Sessions under a clock that stands still until it is told. */
export function startSessions (t: Cleanup): { sessions: Sessions, ended: string[], tick: (ms: number) => void } {
  mockTimers(t, 'setInterval', 'setTimeout', 'Date')
  const sessions = new Sessions()
  const ended: string[] = []
  sessions.on('ended', (session) => { ended.push(session.sessionId) })
  t.after(() => { sessions.close() })
  return { sessions, ended, tick: (ms) => { mock.timers.tick(ms) } }
}

/** An HTTP answer that is held in the hand. `reads`: whether what is written is taken at once. */
export interface Held {
  raw: ServerResponse
  head: () => [number, Record<string, unknown>] | undefined
  text: () => string
  open: () => boolean
  reads: (now: boolean) => void
  break: () => void
}

export function response (): Held {
  const written: string[] = []
  const closers: Array<() => void> = []
  let head: [number, Record<string, unknown>] | undefined
  let reading = true
  const raw = {
    destroyed: false,
    writableEnded: false,
    writableFinished: false,
    writableLength: 0,
    cork () {},
    uncork () {},
    flushHeaders () {},
    writeHead (status: number, headers: Record<string, unknown>) {
      assert.equal(head, undefined, 'there is one head')
      head = [status, headers]
      return raw
    },
    write (text: string | Buffer) {
      assert.equal(raw.writableEnded, false)
      written.push(String(text))
      if (!reading) raw.writableLength += text.length
      return reading
    },
    end (text?: string | Buffer) {
      if (text !== undefined) raw.write(text)
      raw.writableEnded = raw.writableFinished = true
      for (const run of closers.splice(0)) run()
    },
    destroy () {
      raw.destroyed = true
      for (const run of closers.splice(0)) run()
    },
    once (_event: string, run: () => void) { closers.push(run); return raw }
  }
  return {
    raw: raw as unknown as ServerResponse,
    head: () => head,
    text: () => written.join(''),
    open: () => !raw.writableEnded && !raw.destroyed,
    reads: (now) => { reading = now; if (now) raw.writableLength = 0 },
    break: () => { raw.destroy() }
  }
}

export const address = '192.0.2.1'

/** Begins a session in a place of its own. */
export const beginSession = (sessions: Sessions, each: View, version: LegacyVersion, capabilities: ClientCapabilities): Session =>
  sessions.begin(each, version, capabilities, sessions.reserve(each, address))
/** A session of ann's, under a clock of its own. */
export function begun (t: Cleanup): ReturnType<typeof startSessions> & { session: Session } {
  const made = startSessions(t)
  return { ...made, session: beginSession(made.sessions, view('ann'), '2025-11-25', {}) }
}

/** An event stream over one. */
export function connection (): Held & { stream: EventStream } {
  const held = response()
  return { ...held, stream: new EventStream(held.raw, {}) }
}

/** A stream that a client of a session has opened. @param lastEventId where it broke before */
export function listening (session: Session, lastEventId?: string): ReturnType<typeof connection> {
  const made = connection()
  session.listen(made.stream, lastEventId)
  return made
}

/** The messages on an event stream. */
export const messagesIn = (text: string): string[] => [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data)

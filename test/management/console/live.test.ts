import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { mock } from 'node:test'
import type { FastifyReply } from 'fastify'
import { test } from 'tap'
import { LiveStreams } from '../../../plugins/management/console/live.ts'
import type { SignedInSessions, SignedInSession } from '../../../plugins/management/console/sessions.ts'
import type { Principal, Settings } from '../../../plugins/settings/index.ts'
import { mockTimers, turnsOfLoop } from '../../helpers/clock.ts'

/** A response whose connection takes no bytes, so that it never closes, with the errors that it emits. */
function blockedResponse (): { reply: FastifyReply, raw: ServerResponse, failures: Error[] } {
  const raw = new ServerResponse(new IncomingMessage(new Socket()))
  const failures: Error[] = []
  raw.on('error', (error) => { failures.push(error) })
  return { reply: { hijack: () => ({ raw }) } as unknown as FastifyReply, raw, failures }
}

void test('a stream that has ended is not written to while its browser reads nothing', async (t) => {
  mockTimers(t, 'setInterval')
  const principal = { key: 'user ada', isAdmin: false } as unknown as Principal
  let isDeleted = false
  const signedIn: SignedInSession = {
    id: 'session', principal: { ...principal, inSnapshot: () => isDeleted ? undefined : principal }
  }
  const sessions = { isValid: async () => true } as unknown as SignedInSessions
  const streams = new LiveStreams(sessions, { current: {} } as unknown as Settings)
  t.after(() => { streams.close() })
  const { reply, raw, failures } = blockedResponse()
  await streams.open(reply, signedIn, () => 'data')
  isDeleted = true
  for (let check = 0; check < 3; check++) {
    mock.timers.tick(1_000)
    await turnsOfLoop(3)
  }
  assert.equal(raw.writableEnded, true)
  assert.deepEqual(failures, [])
})

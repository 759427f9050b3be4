import assert from 'node:assert/strict'
import { test } from 'tap'
import { Agent, fetch } from 'undici'
import { fine, login, PASSWORD, refused, start, weak, type Answer } from '../helpers/accounts.ts'
import { type Json } from '../helpers/client.ts'
import { isFull } from '../helpers/full.ts'

test('ten wrong passwords for one user from one address', async (t) => {
  const hub = await start(t)
  /** A request from another address of this machine. */
  const from = (address: string, token = '') => {
    const dispatcher = new Agent({ localAddress: address })
    t.after(async () => { await dispatcher.close() })
    return async (route: string, body: unknown): Promise<Answer> => {
      const headers = { 'content-type': 'application/json', 'x-auth-token': token }
      const reply = await fetch(`${hub.url}/api${route}`, { dispatcher, method: 'POST', headers, body: JSON.stringify(body) })
      const text = await reply.text()
      return { status: reply.status, text, body: JSON.parse(text) as Json, headers: new Headers() }
    }
  }
  const guess = async (address: string, password: string, username = 'admin'): Promise<Answer> =>
    await from(address)('/auth/login', { username, password })

  await t.test('the eleventh guess, right or wrong: 429, for that user and address only', async () => {
    for (const username of ['admin', 'nobody']) {
      for (let n = 0; n < 10; n++) {
        refused(
          await login(hub, n % 2 === 0 ? username : username.toUpperCase(), `guess-${n}`, { 'x-forwarded-for': `203.0.113.${n}` }),
          401,
          `guess ${n}`
        )
      }
      for (const password of ['guess', PASSWORD]) {
        const answer = await login(hub, username, password)
        assert.equal(refused(answer, 429).code, 'TH_TOO_MANY_FAILURES')
        const seconds = Number(answer.headers.get('retry-after'))
        assert.ok(seconds > 100 && seconds <= 300, String(seconds))
      }
    }
    fine(await guess('127.0.0.2', PASSWORD))
    refused(await login(hub, 'other', 'guess'), 401)
  })

  await t.test('guesses at once have no more tries', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, async (_, n) => await guess('127.0.0.3', `guess-${n}`)))
    assert.deepEqual([401, 429].map((status) => answers.filter((answer) => answer.status === status).length), [10, 30])
  })

  await t.test('right ones at once all succeed, and take the count back', async () => {
    for (let n = 0; n < 9; n++) refused(await guess('127.0.0.4', 'guess'), 401)
    for (const answer of await Promise.all(Array.from({ length: isFull ? 50 : 20 }, async () => await guess('127.0.0.4', PASSWORD)))) {
      fine(answer)
    }
    for (let n = 0; n < 2; n++) refused(await guess('127.0.0.4', 'guess'), 401)
    fine(await guess('127.0.0.4', PASSWORD))
  })

  await t.test('change-password is no other door, and what is no guess does not count', async () => {
    const admin = from('127.0.0.5', String(fine(await guess('127.0.0.5', PASSWORD)).token))
    for (let n = 0; n < 12; n++) weak(await admin('/auth/change-password', { currentPassword: 'guess', newPassword: 'short' }), 1)
    for (let n = 0; n < 12; n++) refused(await guess('127.0.0.5', ''), 400)
    for (let n = 0; n < 10; n++) refused(await admin('/auth/change-password', { currentPassword: 'guess', newPassword: PASSWORD }), 401)
    refused(await admin('/auth/change-password', { currentPassword: PASSWORD, newPassword: PASSWORD }), 429)
    refused(await guess('127.0.0.5', PASSWORD), 429)
  })
})

// The address of a gateway elsewhere, and the time at which a key expires: what is taken, and what is said otherwise.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'tap'
import { ManagementApiClient } from '../../cli/api.ts'
import { parseExpiry } from '../../cli/commands/keys.ts'
import { connectToManagementApi } from '../../cli/connect.ts'
import { exitCodes, CommandError } from '../../cli/errors.ts'
import { readEnv } from '../../schemas/read-env.ts'
import { listen } from '../helpers/listen.ts'

const fails = (exit: number, pattern: RegExp) => (error: unknown): boolean => {
  assert.ok(error instanceof CommandError)
  assert.deepEqual([error.exitCode, pattern.test(error.message), /pw/.test(error.message)], [exit, true, false], error.message)
  return true
}

test('--url', async (t) => {
  const former = process.env
  t.after(() => { process.env = former })
  process.env = { ...former, TOOL_HUB_KEY: 'thk_x' }
  for (const url of ['http://user:pw@127.0.0.1:4100', 'http://user:pw@x y', 'user//u:pw@x']) {
    await assert.rejects(connectToManagementApi({ url }), fails(exitCodes.usage, /must not contain a user and a password.*TOOL_HUB_KEY/))
  }
  for (const url of ['foo', 'ftp://a', 'http://', 'http://a:b', 'http://a?b']) await assert.rejects(connectToManagementApi({ url }), fails(exitCodes.usage, /--url cannot be/))
  await assert.rejects(connectToManagementApi({ url: 'user:pw@x' }), fails(exitCodes.usage, /--url cannot be "…@x"/))
  for (const key of ['thk_x\nthk_pw', '“thk_pw”', 'thk_ pw']) {
    process.env.TOOL_HUB_KEY = key
    await assert.rejects(connectToManagementApi({ url: 'http://127.0.0.1:9' }), fails(exitCodes.usage, /TOOL_HUB_KEY has characters that cannot be sent/))
  }
  process.env.TOOL_HUB_KEY = 'thk_x'
  process.env.TOOL_HUB_URL = 'http://user:pw@127.0.0.1'
  await assert.rejects(connectToManagementApi({}), fails(exitCodes.usage, /TOOL_HUB_URL cannot be "http:\/\/…@127/))
  delete process.env.TOOL_HUB_URL
  const server = createServer((_request, response) => {
    response.statusCode = 404
    response.end(JSON.stringify({ success: false, message: 'There is nothing at this path', code: 'TH_NOT_FOUND' }))
  })
  const url = `http://127.0.0.1:${await listen(t, server)}/foo`
  const api = await connectToManagementApi({ url })
  await assert.rejects(api.get('/api/servers'), fails(exitCodes.unreachable, new RegExp(`No gateway answers at ${url}: /api/servers returned 404`)))
})

test('what an answer finds wrong is told once, and not as JSON', async () => {
  const answer = (body: object): ManagementApiClient =>
    new ManagementApiClient(async () => ({ status: 400, text: JSON.stringify(body) }), {})
  const weak = { message: 'The password needs a digit', errors: ['The password needs a digit', 'and a letter'] }
  await assert.rejects(answer(weak).get('/'), { message: 'The password needs a digit: and a letter' })
  const schema = { message: 'body.kind must be one of user, system', errors: [{ path: '/kind', params: { a: 1 } }] }
  await assert.rejects(answer(schema).get('/'), { message: 'body.kind must be one of user, system' })
})

test('an address in a variable is shown without its password', async () => {
  assert.throws(() => readEnv({ REGISTRY_URL: 'ftp://user:pw@x' }), (error: Error) => !error.message.includes('pw'))
})

test('--expires', async (t) => {
  const now = Date.UTC(2026, 0, 1)
  t.intercept(Date, 'now', { value: () => now })
  for (const wrong of ['2026-11-31', '2027-02-29', '2027-13-01', 'soon', '2027', '0d', '5', '']) {
    assert.throws(() => parseExpiry(wrong), fails(exitCodes.usage, /a duration, such as .*, or a date/), wrong)
  }
  assert.equal(parseExpiry('2996-02-29'), '2996-02-29T23:59:59.000Z')
  assert.equal(parseExpiry('2026-01-01'), '2026-01-01T23:59:59.000Z', 'today')
  assert.equal(parseExpiry('2997-01-31T12:00:00+02:00'), '2997-01-31T10:00:00.000Z')
  assert.equal(parseExpiry('90s'), '2026-01-01T00:01:30.000Z')
})

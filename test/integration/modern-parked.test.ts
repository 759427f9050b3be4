// Many calls of modern clients that wait for answers at the same time.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'tap'
import { limits } from '../../plugins/limits/index.ts'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { connected, KEY, OTHER, otherKey, settings, text, within, type Json, type Message } from '../helpers/client.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'
import { setLimits } from '../helpers/patient.ts'

const name = 'form'
const prefix = 'io.modelcontextprotocol/'
const _meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientCapabilities`]: { elicitation: {} } }
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': name
}

async function call (url: string, more: Json = {}, key = KEY): Promise<Message> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, _meta, ...more } })
  const reply = await fetch(url, { method: 'POST', headers: { ...headers, authorization: `Bearer ${key}` }, body })
  const text = await reply.text()
  // An answer that takes long comes as a stream.
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as Message
}

/** Begins calls that are asked something. Side by side, but not as many sockets at a time. */
async function park (url: string, count: number, key?: string): Promise<Message[]> {
  const asked: Message[] = []
  let begun = 0
  await Promise.all(Array.from({ length: 20 }, async () => { while (begun++ < count) asked.push(await call(url, {}, key)) }))
  assert.ok(asked.every(({ result }) => result?.resultType === 'input_required'), JSON.stringify(asked.at(-1)))
  return asked
}

const share = 20

test('parked calls end each by its answer, its time, the end of its access, or with the gateway', async (t) => {
  const { url, world } = await startLegacyBridge(t)
  const hub = await startHub(t, { settings: settings({ s: { url, isolation: 'shared' } }, { bearerKeys: [bearerKey(), otherKey()] }) })
  await connected(hub, 1)
  const route = `${hub.url}/mcp/s`
  const left = async (count: number, why: string): Promise<void> => {
    await until(() => world.running === count, () => `${why}: ${world.running} calls run at the server`)
  }
  const asked = await park(route, share)
  await park(route, share, OTHER)
  await park(route, share)
  // The last ones get less time.
  const { time } = limits.parked
  setLimits(t, limits.parked, { time: 500 })
  await park(route, share)
  setLimits(t, limits.parked, { time })
  await left(3 * share, 'by its time')

  const answered = await Promise.all(asked.map(async ({ result = {} }) => {
    const [key = ''] = Object.keys(result.inputRequests as Json)
    const inputResponses = { [key]: { action: 'accept', content: { name: 'Ann' } } }
    return await call(route, { inputResponses, requestState: result.requestState })
  }))
  assert.ok(answered.every(({ result }) => text(result) === 'accept Ann'))
  await left(2 * share, 'by its answer')

  const stored = JSON.parse(await readFile(hub.settingsPath, 'utf8')) as { bearerKeys: unknown[] }
  await writeFile(hub.settingsPath, JSON.stringify({ ...stored, bearerKeys: stored.bearerKeys.slice(0, 1) }))
  await left(share, 'by the end of its access')

  await within('the end of the gateway', hub.stop())
  await left(0, 'with the gateway')
})

// Clients of both eras over servers of both eras: every cell of the table in docs/eras.md, over HTTP and stdio, with the official SDKs.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js'
import { test, type Test } from 'tap'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { startModern } from '../fakes/modern-server.ts'
import { agent, connected, names, Session, settings, text, type Json, type Message } from '../helpers/client.ts'
import { path, startHub, tsServer, until, type Cleanup } from '../helpers/hub.ts'
import { everyCapability, modernAgent, type Mode } from '../helpers/modern-client.ts'
import { modernRequest, prefix } from '../helpers/modern-request.ts'

type Era = 'legacy' | 'modern'
const eras: readonly Era[] = ['legacy', 'modern']

interface CallOptions { readonly onprogress?: (value: number) => void, readonly signal?: AbortSignal, readonly level?: 'info' }

/** A client of either era: how it does what both eras have, and what it has heard. */
interface Seat {
  readonly version: string | undefined
  list: () => Promise<string[]>
  call: (name: string, args?: Json, options?: CallOptions) => Promise<string>
  /** Begins to hear changes of lists and of one resource. */
  listen: (uri: string) => Promise<void>
  /** The notifications that it got, by method. */
  heard: (method: string) => Json[]
}

/** A tool with its arguments. */
type Tool = readonly [name: string, args?: Json]

/** The tools by which a server does what a row of the table needs. */
type Fixture = Readonly<Record<'steps' | 'hang' | 'sampling' | 'elicitation' | 'roots' | 'touch', Tool>> & { readonly uri: string }

const fixtures: Readonly<Record<Era, Fixture>> = {
  legacy: {
    steps: ['steps'], hang: ['hang'], sampling: ['sample'], elicitation: ['form'], roots: ['roots'], touch: ['touch'], uri: 'r://one'
  },
  modern: {
    steps: ['count', { steps: 3 }],
    hang: ['stall'],
    sampling: ['ask', { kinds: ['sampling'] }],
    elicitation: ['ask', { kinds: ['elicitation'] }],
    roots: ['ask', { kinds: ['roots'] }],
    touch: ['touch', { uri: 'test://one' }],
    uri: 'test://one'
  }
}

async function legacySeat (t: Cleanup, url: string): Promise<Seat> {
  const notes = new Map<string, Json[]>()
  const note = ({ method, params }: { method: string, params?: unknown }): void => {
    notes.set(method, [...notes.get(method) ?? [], (params ?? {}) as Json])
  }
  const client = await agent(t, url, {
    capabilities: everyCapability,
    prepare: (client) => {
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'answered' } }))
      client.setRequestHandler(CreateMessageRequestSchema, () =>
        ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }))
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///root' }] }))
      client.setNotificationHandler(LoggingMessageNotificationSchema, note)
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, note)
      client.setNotificationHandler(ToolListChangedNotificationSchema, note)
    }
  })
  return {
    version: undefined,
    list: async () => names((await client.listTools()).tools),
    call: async (name, args = {}, { onprogress, signal, level } = {}) => {
      if (level !== undefined) await client.setLoggingLevel(level)
      return text(await client.callTool({ name, arguments: args }, undefined, {
        signal, ...(onprogress && { onprogress: ({ progress }) => { onprogress(progress) } })
      }))
    },
    listen: async (uri) => { await client.subscribeResource({ uri }) },
    heard: (method) => notes.get(method) ?? []
  }
}

async function modernSeat (t: Cleanup, url: string, mode: Mode): Promise<Seat> {
  const { client, heard } = await modernAgent(t, url, { mode })
  return {
    version: client.getNegotiatedProtocolVersion(),
    list: async () => names((await client.listTools()).tools),
    call: async (name, args = {}, { onprogress, signal, level } = {}) => text(await client.callTool(
      { name, arguments: args, ...(level !== undefined && { _meta: { [`${prefix}logLevel`]: level } }) },
      { signal, ...(onprogress && { onprogress: ({ progress }: { progress: number }) => { onprogress(progress) } }) }
    )),
    listen: async (uri) => {
      const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] })
      t.after(async () => { await subscription.close() })
    },
    heard: (method) => heard.get(method) ?? []
  }
}

const heardOf = async (seat: Seat, method: string): Promise<void> => {
  await until(() => seat.heard(method).length > 0, () => `${method} did not come`)
}

/** What each row of the table means. They run in this order. */
const operations: Readonly<Record<string, (seat: Seat, fixture: Fixture) => Promise<void>>> = {
  list: async (seat) => { assert.ok((await seat.list()).includes('echo')) },
  call: async (seat) => { assert.equal(await seat.call('echo', { message: 'grüß dich' }), 'grüß dich') },
  progress: async (seat, { steps: [name, args] }) => {
    const steps: number[] = []
    await seat.call(name, args, { onprogress: (value) => { steps.push(value) } })
    assert.deepEqual(steps, [1, 2, 3])
  },
  cancel: async (seat, { hang: [name] }) => {
    const count = async (args: Json = {}): Promise<number> => Number(await seat.call('cancelled', args))
    const before = await count()
    const controller = new AbortController()
    const hanging = seat.call(name, {}, { signal: controller.signal })
    hanging.catch(() => {})
    // What is cancelled before it has reached the server is not cancelled there.
    await until(async () => await count({ hanging: true }) > 0, 'the call did not arrive')
    controller.abort()
    await assert.rejects(hanging)
    await until(async () => await count() > before, 'the server goes on')
  },
  sampling: async (seat, { sampling: [name, args] }) => { assert.match(await seat.call(name, args), /sampled/) },
  elicitation: async (seat, { elicitation: [name, args] }) => { assert.match(await seat.call(name, args), /accept.*answer/) },
  roots: async (seat, { roots: [name, args] }) => { assert.match(await seat.call(name, args), /file:\/\/\/root/) },
  logging: async (seat) => {
    await seat.call('log', {}, { level: 'info' })
    assert.deepEqual(seat.heard('notifications/message').slice(-2).map(({ level }) => level), ['info', 'error'])
    assert.ok(!seat.heard('notifications/message').some(({ level }) => level === 'debug'))
  },
  subscribe: async (seat, { uri, touch: [name, args] }) => {
    await seat.listen(uri)
    await seat.call(name, args)
    await heardOf(seat, 'notifications/resources/updated')
    assert.equal(seat.heard('notifications/resources/updated')[0]?.uri, uri)
  },
  list_changed: async (seat) => {
    const before = (await seat.list()).length
    await seat.call('grow')
    await heardOf(seat, 'notifications/tools/list_changed')
    await until(async () => (await seat.list()).length > before, () => 'the new tool is not listed')
  }
}

/** The first answer to a request of a modern client, written by hand. */
async function askModern (url: string, method: string, params: Json): Promise<{ status: number, message: Message }> {
  const gone = new AbortController()
  const response = await fetch(url, { method: 'POST', ...modernRequest(method, { params }), signal: gone.signal })
  let read = ''
  for await (const chunk of response.body ?? []) {
    read += Buffer.from(chunk as Uint8Array).toString()
    const [, data] = /^data: (.+)$/m.exec(read) ?? []
    if (data !== undefined) { read = data; break }
  }
  gone.abort()
  return { status: response.status, message: JSON.parse(read) as Message }
}

/** The cells of the table, by row and by the eras of client and server. */
async function outcomes (): Promise<Array<{ row: string, cells: ReadonlyMap<string, string> }>> {
  const lines = (await readFile(path('docs/eras.md'), 'utf8')).split('\n').filter((line) => line.startsWith('| ') && line.endsWith('|'))
  const table = lines.map((line) => line.slice(1, -1).split('|').map((cell) => cell.trim()))
  return table.filter(([row = '']) => row !== '').map(([row = '', ...cells]) => {
    assert.equal(cells.length, 4, row)
    return { row, cells: new Map(eras.flatMap((client, at) => eras.map((server, of) => [`${client} ${server}`, cells[2 * at + of] ?? '']))) }
  })
}

test('clients of both eras over servers of both', async (t) => {
  const legacy = await startLegacyBridge(t)
  const modern = await startModern(t, { modern: true })
  const hub = await startHub(t, {
    settings: settings({
      'legacy-http': { url: legacy.url },
      'legacy-stdio': tsServer('test/fakes/legacy-bridge.ts'),
      'modern-http': { url: modern.url },
      'modern-stdio': tsServer('test/fakes/modern-server.ts', 'modern')
    })
  })
  await connected(hub, 4)
  const rows = await outcomes()
  const methods = rows.flatMap(({ row, cells }) => row.startsWith('`') ? [{ method: row.slice(1, -1), cells }] : [])
  assert.deepEqual(rows.map(({ row }) => row).slice(0, -methods.length), Object.keys(operations))
  assert.ok(rows.every(({ cells }) => [...cells.values()].every((cell) => /^(works|`-\d+`$)/.test(cell))))

  t.jobs = 4
  for (const era of eras) {
    for (const transport of ['http', 'stdio']) {
      // Those of one server run one after another, since all its clients see what its tools change.
      t.test(`${era} ${transport}`, { buffered: true }, async (t) => { await oneServer(t, era, `${hub.url}/mcp/${era}-${transport}`, methods) })
    }
  }
})

interface Row { readonly method: string, readonly cells: ReadonlyMap<string, string> }

async function oneServer (t: Test, era: Era, url: string, methods: readonly Row[]): Promise<void> {
  for (const kind of ['legacy', 'pinned', 'auto'] as const) {
    await t.test(kind === 'legacy' ? 'SDK 1.32' : `SDK 2.4, ${kind}`, async (t) => {
      const seat = kind === 'legacy' ? await legacySeat(t, url) : await modernSeat(t, url, kind)
      assert.equal(seat.version, kind === 'legacy' ? undefined : '2026-07-28')
      for (const [name, run] of Object.entries(operations)) {
        await run(seat, fixtures[era]).catch((error: unknown) => { throw new Error(`${name} fails: ${String(error)}`, { cause: error }) })
      }
    })
  }
  await t.test('what is not in the protocol', async () => {
    const session = await Session.open(url)
    const clientInfo = { name: 'raw', version: '1' }
    for (const { method, cells } of methods) {
      const params = {
        uri: fixtures[era].uri, level: 'info', notifications: {}, protocolVersion: '2025-11-25', capabilities: {}, clientInfo
      }
      const answers = {
        legacy: { status: 200, message: await session.request(method, params) },
        modern: await askModern(url, method, params)
      }
      for (const client of eras) {
        const { status, message: { error } } = answers[client]
        const expected = cells.get(`${client} ${era}`)?.split(':')[0]
        assert.equal(error === undefined ? 'works' : `\`${error.code}\``, expected, `${method}, ${client}: ${JSON.stringify(error)}`)
        assert.equal(status, client === 'modern' && error !== undefined ? 404 : 200, method)
      }
    }
  })
}

// Many servers in one request.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { at, names, type Json } from '../helpers/client.ts'
import { list, members, onDisk, started, STDIO, countWrites, type Answer } from '../helpers/management.ts'

test('a batch of 500', async (t) => {
  const writes = countWrites(t)
  const { hub, admin, bob } = await started(t, { taken: { url: 'http://127.0.0.1:9/mcp', enabled: false } })
  const config = { url: 'http://127.0.0.1:9/mcp', enabled: false, headers: { 'X-Key': 'a-key-of-each-of-them' } }
  const wrong: unknown[] = [
    { name: 'taken', config },
    { name: 'batch', config },
    { name: 'no-config' },
    { config },
    7,
    null,
    'text',
    { name: '__proto__', config },
    { name: 'bad-url', config: { url: 'nonsense' } },
    { name: 'twice', config: { type: 'pigeon' } },
    { name: 'server-0', config },
    { name: ['a'], config }
  ]
  const every = (good: boolean, bad: boolean, prefix: string): unknown[] => Array.from({ length: 500 }, (_, n) =>
    n % 10 === 9
      ? bad ? wrong[((n - 9) / 10) % wrong.length] : undefined
      : good ? { name: `${prefix}-${n}`, config: { ...config, description: String(n) } } : undefined
  ).filter((one) => one !== undefined)
  const outcome = ({ status, body }: Answer): unknown[] =>
    [status, at(body, 'success'), at(body, 'data', 'successCount'), at(body, 'data', 'failureCount')]
  const nameOf = (one: unknown): unknown => at(one, 'name')

  await t.test('each is answered, in order; the valid ones are stored in one write', async () => {
    const entries = every(true, true, 'server')
    assert.equal(entries.length, 500 - wrong.filter((one) => one === undefined).length)
    const former = writes()
    const answer = await admin.ask('POST', '/servers/batch', { servers: entries })
    assert.equal(writes() - former, 1, 'one commit')
    assert.deepEqual(outcome(answer), [207, true, 450, 50], answer.text.slice(0, 1_000))
    const results = at(answer.body, 'data', 'results') as Json[]
    assert.equal(results.length, 500)
    for (const [n, result] of results.entries()) {
      members(result, ['name', 'success'], ['message'])
      assert.equal(result.success, n % 10 !== 9, JSON.stringify([entries[n], result]))
      if (typeof nameOf(entries[n]) === 'string') assert.equal(result.name, nameOf(entries[n]))
      if (result.success === false) assert.ok(typeof result.message === 'string' && result.message !== '', JSON.stringify(result))
    }
    const file = at(await onDisk(hub), 'mcpServers') as Json
    assert.deepEqual(Object.keys(file), ['taken', ...entries.filter((_, n) => n % 10 !== 9).map((one) => String(nameOf(one)))])
    assert.equal(at(file, 'server-498', 'description'), '498')
    assert.equal(list(await admin.ask('GET', '/servers')).length, 451)
  })

  await t.test('all of them good: 200', async () => {
    const former = writes()
    const answer = await admin.ask('POST', '/servers/batch', { servers: every(true, false, 'good') })
    assert.equal(writes() - former, 1, 'one commit')
    assert.deepEqual(outcome(answer), [200, true, 450, 0], answer.text.slice(0, 1_000))
  })

  await t.test('none of them: 400 with the same data, and nothing is written', async () => {
    const before = await onDisk(hub)
    const former = writes()
    const entries = every(false, true, 'none')
    const answer = await admin.ask('POST', '/servers/batch', { servers: entries })
    assert.equal(writes() - former, 0)
    assert.deepEqual(outcome(answer), [400, false, 0, entries.length], answer.text.slice(0, 1_000))
    assert.equal((at(answer.body, 'data', 'results') as unknown[]).length, entries.length)
    assert.equal(typeof at(answer.body, 'message'), 'string')
    assert.deepEqual(await onDisk(hub), before)
  })

  await t.test('the same name twice: the first one is it', async () => {
    const answer = await admin.ask('POST', '/servers/batch', {
      servers: [
        { name: 'same', config: { ...config, description: 'first' } },
        { name: 'same', config: { ...config, description: 'second' } }
      ]
    })
    assert.deepEqual((at(answer.body, 'data', 'results') as Json[]).map(({ success }) => success), [true, false], answer.text)
    assert.equal(at(await admin.server('same'), 'config', 'description'), 'first')
  })

  await t.test('who is no admin: nothing that runs a command or is of type openapi, the rest is theirs', async () => {
    const answer = await bob.ask('POST', '/servers/batch', {
      servers: [
        { name: 'bobs', config: { url: 'https://mcp.example.com/mcp', enabled: false } },
        { name: 'runs', config: STDIO },
        { name: 'rest', config: { type: 'openapi', url: 'https://api.example.com/openapi.json' } },
        { name: 'given', config: { url: 'https://mcp.example.com/mcp', enabled: false, owner: 'admin' } }
      ]
    })
    const results = at(answer.body, 'data', 'results') as Json[]
    assert.deepEqual([answer.status, ...results.slice(0, 3).map(({ success }) => success)], [207, true, false, false], answer.text)
    assert.deepEqual(names(list(await bob.ask('GET', '/servers'))), results.filter(({ success }) => success).map(({ name }) => name))
    for (const { config } of list(await bob.ask('GET', '/servers'))) assert.equal(at(config, 'owner'), 'bob')
  })
})

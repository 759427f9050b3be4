// A modern client, of the SDK's second line, over a legacy server, in detail. The table of all combinations: integration/eras.test.ts.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { text } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { modernAgent, type ModernAgent } from '../helpers/modern-client.ts'

const logLevel = 'io.modelcontextprotocol/logLevel'

test('a modern client over a legacy server', async (t) => {
  const { url } = await startLegacyBridge(t)
  const hub = await served(t, { http: { url }, other: { url } })
  await t.test('on the route of the server', async (t) => {
    const agent = await modernAgent(t, `${hub.url}/mcp/http`)
    await plain(agent)
    await questions(agent)
    await logs(agent)
    await news(agent)
  })
  await t.test('on a merged route', async (t) => {
    const { client, asked } = await modernAgent(t, `${hub.url}/mcp`)
    const { tools } = await client.listTools()
    assert.ok(tools.some(({ name }) => name === 'http-form') && tools.some(({ name }) => name === 'other-form'))
    assert.equal(text(await client.callTool({ name: 'http-twice' })), 'accept answer-1, accept answer-2')
    assert.equal(text(await client.callTool({ name: 'other-sample' })), 'sampled')
    assert.equal(asked.length, 3)
    assert.equal(client.getServerVersion()?.name, 'tool-hub')
  })
})

async function plain ({ client }: ModernAgent): Promise<void> {
  assert.equal(client.getServerVersion()?.name, 'legacy-bridge')
  assert.equal(client.getInstructions(), 'Ask me anything')
  const { tools } = await client.listTools()
  assert.deepEqual(tools.slice(0, 2).map(({ name }) => name), ['echo', 'steps'])
  assert.equal(text(await client.callTool({ name: 'echo', arguments: { message: 'grüß dich' } })), 'grüß dich')
  // Of the envelope, nothing reaches a server of another era; the rest of _meta does.
  const _meta = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01' }
  assert.deepEqual(JSON.parse(text(await client.callTool({ name: 'echo', _meta }))), _meta)
  assert.deepEqual(await client.readResource({ uri: 'r://one' }).then(({ contents }) => contents), [{ uri: 'r://one', text: 'one' }])
  await assert.rejects(client.readResource({ uri: 'r://none' }), { code: -32602 })
  await assert.rejects(client.callTool({ name: 'none' }), { code: -32602 })
  const steps: number[] = []
  const done = await client.callTool({ name: 'steps' }, { onprogress: ({ progress }) => { steps.push(progress) } })
  assert.equal(text(done), 'done')
  assert.deepEqual(steps, [1, 2, 3])
}

async function questions ({ client, asked }: ModernAgent): Promise<void> {
  asked.length = 0
  assert.equal(text(await client.callTool({ name: 'sample' })), 'sampled')
  assert.equal(text(await client.callTool({ name: 'form' })), 'accept answer-2')
  assert.equal(text(await client.callTool({ name: 'url' })), 'accept')
  assert.equal(text(await client.callTool({ name: 'roots' })), 'file:///root')
  assert.match(text(await client.callTool({ name: 'both' })), /^sampled and accept answer-\d$/)
  assert.equal(text(await client.callTool({ name: 'twice' })), 'accept answer-7, accept answer-8')
  assert.deepEqual((await client.getPrompt({ name: 'greet' })).messages.map(({ content }) => content), [
    { type: 'text', text: 'Hello answer-9' }
  ])
  assert.deepEqual(asked[2], {
    method: 'elicitation/create', params: { mode: 'url', message: 'Open it', url: 'https://example.com/' }
  })
  // The error of former revisions that wants an address opened is a question, and then the call runs once more.
  assert.equal(text(await client.callTool({ name: 'again' })), 'opened')
}

async function logs ({ client, heard }: ModernAgent): Promise<void> {
  const levels = (): unknown[] => (heard.get('notifications/message') ?? []).map(({ level }) => level)
  heard.delete('notifications/message')
  await client.callTool({ name: 'log' })
  assert.deepEqual(levels(), [])
  await client.callTool({ name: 'log', _meta: { [logLevel]: 'info' } })
  assert.deepEqual(levels(), ['info', 'error'])
}

async function news ({ client, heard }: ModernAgent): Promise<void> {
  heard.clear()
  const subscription = await client.listen({
    toolsListChanged: true, promptsListChanged: false, resourceSubscriptions: ['r://one', 'r://none-of-this']
  })
  assert.equal(subscription.honoredFilter.toolsListChanged, true)
  assert.equal(subscription.honoredFilter.promptsListChanged, undefined)
  assert.ok(subscription.honoredFilter.resourceSubscriptions?.includes('r://one'))
  await client.callTool({ name: 'touch' })
  await until(() => heard.get('notifications/resources/updated')?.some(({ uri }) => uri === 'r://one') === true,
    () => 'no update came')
  await client.callTool({ name: 'grow' })
  await until(() => heard.has('notifications/tools/list_changed'), () => 'no list_changed came')
  await subscription.close()
}

// The questions of a legacy server to a modern client, of the SDK's second line. All combinations: integration/eras.test.ts.
import assert from 'node:assert/strict'
import { served } from '../helpers/served.ts'
import { test } from 'tap'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { text } from '../helpers/client.ts'
import { modernAgent, type ModernAgent } from '../helpers/modern-client.ts'

test('a modern client over a legacy server', async (t) => {
  const { url } = await startLegacyBridge(t)
  const hub = await served(t, { http: { url }, other: { url } })
  await t.test('on the route of the server', async (t) => {
    await questions(await modernAgent(t, `${hub.url}/mcp/http`))
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

async function questions ({ client, asked }: ModernAgent): Promise<void> {
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

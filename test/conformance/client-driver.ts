/**
 * The client of the conformance suite's scenarios for clients: the gateway with the scenario's server as its upstream, and an SDK client in
 * front of it that lists everything and calls each tool. The suite looks at what the gateway sends. The server's URL is the last argument,
 * the gateway's is `TOOL_HUB_URL`. Plain Node runs this file: it starts once a scenario.
 */
import assert from 'node:assert/strict'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import {
  CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema
} from '@modelcontextprotocol/sdk/types.js'
import { agent, type Json } from '../helpers/client.ts'
import { Tested } from './gateway.ts'

interface Wanted { readonly name: string, readonly arguments: Json }
const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as { toolCalls?: Wanted[] }

/** Arguments that fit a tool's schema, as far as its types say. @param object to give where one is wanted */
function argumentsFor (schema: { properties?: Record<string, Json> }, object: Json): Json {
  const examples: Json = { number: 5, integer: 3, boolean: true, string: 'text', array: [], object }
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([key, { type }]) => [key, examples[String(type)]]))
}

async function useAll (client: Client): Promise<void> {
  const offered = client.getServerCapabilities() ?? {}
  if (offered.tools) {
    const { tools } = await client.listTools()
    // A tool that takes a schema is shown that of the first one, as it has arrived.
    const [first] = tools
    const calls = toolCalls ?? tools.map(({ name, inputSchema }) =>
      ({ name, arguments: argumentsFor(inputSchema as Json, (first?.inputSchema ?? {}) as Json) }))
    for (const params of calls) {
      await client.request({ method: 'tools/call', params }, CallToolResultSchema).catch((error: unknown) => { console.error(error) })
    }
  }
  if (offered.resources) {
    for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri })
  }
  if (offered.prompts) {
    for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name })
  }
}

const steps: Array<() => unknown> = []
const cleanup = { after: (step: () => unknown) => { steps.push(step) } }
try {
  const tested = await Tested.add({ url: process.argv.at(-1) })
  steps.push(async () => { await tested.remove() })
  const { status, error } = await tested.settled()
  assert.equal(status, 'connected', String(error))
  await useAll(await agent(cleanup, tested.url, {
    capabilities: { sampling: {}, roots: {}, elicitation: { form: { applyDefaults: true } } },
    prepare: (client) => {
      client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
        const isConfirmed = JSON.stringify(params).includes('"confirmed"')
        return { action: 'accept', content: isConfirmed ? { confirmed: true } : {} }
      })
      client.setRequestHandler(CreateMessageRequestSchema, async () =>
        ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'an answer' } }))
      client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [] }))
    }
  }))
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step()
}
process.exit()

// Clients of others list, call and get progress through /mcp: mcp-remote, the AI SDK, OpenAI Agents, LangChain and the inspector's
// command line. They are installed from npm into .cache/clients.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { cachedPackages } from '../helpers/packages.ts'
import { agent, connected, directStdio, everything, KEY, names, settings, text } from '../helpers/client.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { startHub, type Cleanup } from '../helpers/hub.ts'

const packages = {
  'mcp-remote': '0.15.1',
  '@ai-sdk/mcp': '1.0.102',
  '@openai/agents': '0.20.0',
  '@langchain/mcp-adapters': '1.1.4'
}
/** It needs a newer Node than the gateway. */
const inspector = { node: '22.23.3', '@modelcontextprotocol/inspector': '2.12.0' }
const sum = 'everything-get-sum'
/** The SDK's client forgets a call at its answer, before it has handled a notification that was read together with it. */
const lastMayBeLost = 'progress, except the one that comes with the answer'
const long = 'everything-trigger-long-running-operation'

async function start (t: Cleanup): Promise<{ url: string, modules: string, tools: string[] }> {
  const modules = await cachedPackages('clients', packages)
  const hub = await startHub(t, { settings: settings({ everything: { url: await everything(t) } }) })
  await connected(hub, 1)
  const url = `${hub.url}/mcp`
  const client = await agent(t, url, { key: KEY })
  return { url, modules, tools: names((await client.listTools()).tools).sort() }
}

/** Runs a program beside the installed packages. @returns the JSON that it prints last */
async function ran (modules: string, name: string, program: string, env: Record<string, string>): Promise<unknown> {
  const file = join(dirname(modules), `${name}.mjs`)
  await writeFile(file, program)
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env: { PATH: process.env.PATH ?? '', ...env } })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}

test('mcp-remote', async (t) => {
  const { url, modules, tools } = await start(t)
  const args = [join(modules, 'mcp-remote/dist/proxy.js'), url, '--header', `Authorization:Bearer ${KEY}`]
  const client = await directStdio(t, { command: process.execPath, args }, { HOME: dirname(modules) })
  assert.deepEqual(names((await client.listTools()).tools).sort(), tools)
  assert.match(text(await client.callTool({ name: sum, arguments: { a: 2, b: 40 } })), /42/)
  const progress: number[] = []
  const onprogress = (each: { progress: number }): void => { progress.push(each.progress) }
  await client.callTool({ name: long, arguments: { duration: 1, steps: 3 } }, undefined, { onprogress })
  assert.deepEqual(progress.slice(0, 2), [1, 2], lastMayBeLost)
})

test('the AI SDK', async (t) => {
  const { url, modules, tools } = await start(t)
  const answer = await ran(modules, 'ai-sdk', `
    import { experimental_createMCPClient as before, createMCPClient } from '@ai-sdk/mcp'
    const client = await (createMCPClient ?? before)({
      transport: { type: 'http', url: process.env.URL, headers: { Authorization: 'Bearer ' + process.env.KEY } }
    })
    const tools = await client.tools()
    const result = await tools['${sum}'].execute({ a: 2, b: 40 }, { toolCallId: '1', messages: [] })
    const { resources } = await client.listResources()
    console.log(JSON.stringify({ names: Object.keys(tools).sort(), result, resources: resources.length }))
    await client.close()
  `, { URL: url, KEY }) as { names: string[], result: unknown, resources: number }
  assert.deepEqual(answer.names, tools)
  assert.match(text(answer.result), /42/)
  assert.ok(answer.resources > 0)
})

test('OpenAI Agents', async (t) => {
  const { url, modules, tools } = await start(t)
  const answer = await ran(modules, 'openai-agents', `
    import { MCPServerStreamableHttp } from '@openai/agents'
    const server = new MCPServerStreamableHttp({
      url: process.env.URL, name: 'hub', requestInit: { headers: { Authorization: 'Bearer ' + process.env.KEY } }
    })
    await server.connect()
    const tools = await server.listTools()
    const result = await server.callTool('${sum}', { a: 2, b: 40 })
    console.log(JSON.stringify({ names: tools.map(({ name }) => name).sort(), result }))
    await server.close()
  `, { URL: url, KEY, OPENAI_AGENTS_DISABLE_TRACING: '1' }) as { names: string[], result: unknown }
  assert.deepEqual(answer.names, tools)
  assert.match(JSON.stringify(answer.result), /42/)
})

test('LangChain', async (t) => {
  const { url, modules, tools } = await start(t)
  const answer = await ran(modules, 'langchain', `
    import { MultiServerMCPClient } from '@langchain/mcp-adapters'
    const progress = []
    const client = new MultiServerMCPClient({
      mcpServers: {
        hub: { transport: 'http', url: process.env.URL, headers: { Authorization: 'Bearer ' + process.env.KEY } }
      },
      onProgress: ({ progress: done }) => { progress.push(done) }
    })
    const tools = await client.getTools()
    const find = (name) => tools.find((each) => each.name.endsWith(name))
    const result = await find('${sum}').invoke({ a: 2, b: 40 })
    await find('${long}').invoke({ duration: 1, steps: 3 })
    console.log(JSON.stringify({ names: tools.map(({ name }) => name).sort(), result, progress }))
    await client.close()
  `, { URL: url, KEY }) as { names: string[], result: unknown, progress: number[] }
  assert.deepEqual(answer.names, tools)
  assert.match(JSON.stringify(answer.result), /42/)
  assert.deepEqual(answer.progress.slice(0, 2), [1, 2], lastMayBeLost)
})

test('the inspector on the command line', async (t) => {
  const { url, tools } = await start(t)
  const modules = await cachedPackages('inspector', inspector)
  const launcher = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
  const env = { PATH: process.env.PATH ?? '', HOME: await temporaryFolder(t), MCP_INSPECTOR_SECRET_STORE: 'file' }
  const inspect = async (...args: string[]): Promise<Record<string, unknown>> => {
    const common = ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${KEY}`, '--format', 'json', '--quiet']
    const { stdout } = await promisify(execFile)(join(modules, '.bin/node'), [launcher, ...common, ...args], { env })
    const answer = JSON.parse(stdout) as { result?: Record<string, unknown> }
    return answer.result ?? answer
  }
  assert.deepEqual(names((await inspect('--method', 'tools/list')).tools).sort(), tools)
  const call = ['--method', 'tools/call', '--tool-name', sum, '--tool-arg', 'a=2', '--tool-arg', 'b=40']
  assert.match(text(await inspect(...call)), /42/)
})

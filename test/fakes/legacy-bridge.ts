/**
 * A server of the legacy era, on the official SDK, with one tool for everything that a server can do with a client. As a program it serves
 * stdio; `startLegacyBridge` serves streamable HTTP with sessions from within the test.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema, GetPromptRequestSchema, ListPromptsRequestSchema, ListResourcesRequestSchema, ListToolsRequestSchema, McpError,
  ReadResourceRequestSchema, SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema
} from '@modelcontextprotocol/sdk/types.js'
import type { Cleanup } from '../helpers/hub.ts'

/** What all sessions of one server have in common. */
export interface World {
  cancelled: number
  running: number
  /** Calls of `hang` that are open. */
  hanging: number
  subscribed: Set<string>
  tools: string[]
  servers: Set<Server>
}

const schema = { type: 'object' as const, properties: { message: { type: 'string', 'x-mcp-header': 'Message' } } }
const form = { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'] }
const sampling = (text: string): { messages: Array<{ role: 'user', content: { type: 'text', text: string } }>, maxTokens: number } =>
  ({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 10 })

export const newWorld = (): World => ({
  cancelled: 0,
  running: 0,
  hanging: 0,
  subscribed: new Set(),
  servers: new Set(),
  tools: ['echo', 'steps', 'hang', 'cancelled', 'sample', 'form', 'url', 'both', 'twice', 'roots', 'log', 'grow', 'touch', 'slow', 'again']
})

export function legacyBridge (world: World): Server {
  const server = new Server({ name: 'legacy-bridge', version: '1' }, {
    capabilities: {
      tools: { listChanged: true }, prompts: {}, resources: { subscribe: true, listChanged: true }, logging: {}
    },
    instructions: 'Ask me anything'
  })
  world.servers.add(server)
  const opened = new Set<string>()
  server.onclose = () => { world.servers.delete(server) }
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: world.tools.map((name) => ({ name, inputSchema: name === 'echo' ? schema : { type: 'object' as const } }))
  }))
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [{ name: 'greet' }] }))
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: 'r://one', name: 'one' }] }))
  server.setRequestHandler(SetLevelRequestSchema, () => ({}))
  server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => { world.subscribed.add(uri); return {} })
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params: { uri } }) => { world.subscribed.delete(uri); return {} })
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    if (uri !== 'r://one') throw new McpError(-32002, 'Resource not found')
    return { contents: [{ uri, text: 'one' }] }
  })
  server.setRequestHandler(GetPromptRequestSchema, async (_request, { requestId }) => {
    const { content } = await server.elicitInput({ message: 'Who?', requestedSchema: form }, { relatedRequestId: requestId })
    return { messages: [{ role: 'user', content: { type: 'text', text: `Hello ${String(content?.name)}` } }] }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args = {}, _meta: meta } }, extra) => {
    const text = (value: string): { content: Array<{ type: 'text', text: string }> } => ({ content: [{ type: 'text', text: value }] })
    const on = { relatedRequestId: extra.requestId }
    const elicit = async (message: string): Promise<string> => {
      const { action, content } = await server.elicitInput({ message, requestedSchema: form }, on)
      return `${action} ${String(content?.name)}`
    }
    const sample = async (): Promise<string> => {
      const { content } = await server.createMessage(sampling('Say something'), on)
      return 'type' in content && content.type === 'text' ? content.text : 'no text'
    }
    world.running++
    try {
      switch (name) {
        case 'echo': return text(String(args.message ?? JSON.stringify(meta ?? {})))
        case 'steps':
          for (let progress = 1; progress <= 3; progress++) {
            const progressToken = meta?.progressToken ?? 0
            await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } })
          }
          return text('done')
        case 'hang':
          world.hanging++
          await new Promise<void>((resolve) => { extra.signal.addEventListener('abort', () => { world.cancelled++; resolve() }) })
          world.hanging--
          return text('cancelled')
        case 'cancelled': return text(String(args.hanging === true ? world.hanging : world.cancelled))
        case 'sample': return text(await sample())
        case 'form': return text(await elicit('Your name?'))
        case 'slow': {
          const name = await elicit('Your name?')
          await new Promise((resolve) => { setTimeout(resolve, 300) })
          return text(name)
        }
        case 'url': {
          const params = { mode: 'url' as const, message: 'Open it', url: 'https://example.com/', elicitationId: 'e1' }
          return text((await server.elicitInput(params, on)).action)
        }
        case 'again': {
          if (opened.has('again')) return text('opened')
          opened.add('again')
          const elicitations = [{ mode: 'url', message: 'Open it first', url: 'https://example.com/first', elicitationId: 'e2' }]
          throw new McpError(-32042, 'Open something first', { elicitations })
        }
        case 'both': return text((await Promise.all([sample(), elicit('Your name?')])).join(' and '))
        case 'twice': return text(`${await elicit('First?')}, ${await elicit('Second?')}`)
        case 'roots': return text((await server.listRoots(undefined, on)).roots.map(({ uri }) => uri).join())
        case 'log':
          for (const level of ['debug', 'info', 'error'] as const) {
            await extra.sendNotification({ method: 'notifications/message', params: { level, data: `at ${level}` } })
          }
          return text('logged')
        case 'grow':
          world.tools.push(`grown-${world.tools.length}`)
          for (const each of world.servers) await each.sendToolListChanged()
          return text('grown')
        case 'touch':
          for (const each of world.servers) {
            for (const uri of world.subscribed) await each.sendResourceUpdated({ uri })
          }
          return text('touched')
        default: throw new McpError(-32602, `Unknown tool: ${name}`)
      }
    } catch (error) {
      // What a client refused is shown as the SDK's own servers show it.
      if (error instanceof McpError && name !== 'again') return { ...text(error.message), isError: true }
      throw error
    } finally {
      world.running--
    }
  })
  return server
}

/** Serves streamable HTTP with sessions; resolves with the URL. */
export async function startLegacyBridge (
  t: Cleanup,
  world = newWorld()
): Promise<{ url: string, world: World, stop: () => Promise<void> }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const http = createServer((req, res) => {
    void (async () => {
      const known = sessions.get(String(req.headers['mcp-session-id']))
      if (known) { await known.handleRequest(req, res); return }
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => { sessions.set(id, transport) }
      })
      // The types of the two do not agree under exactOptionalPropertyTypes.
      await legacyBridge(world).connect(transport as Parameters<Server['connect']>[0])
      await transport.handleRequest(req, res)
    })()
  })
  await new Promise<void>((resolve) => { http.listen(0, '127.0.0.1', resolve) })
  const { port } = http.address() as AddressInfo
  const stop = async (): Promise<void> => {
    http.closeAllConnections()
    if (http.listening) await new Promise((resolve) => { http.close(resolve) })
  }
  t.after(stop)
  return { url: `http://127.0.0.1:${port}/mcp`, world, stop }
}

if (/legacy-bridge\.[jt]s$/.test(process.argv[1] ?? '')) {
  await legacyBridge(newWorld()).connect(new StdioServerTransport())
}

/**
 * An MCP server (Streamable HTTP with sessions, on the official SDK) with every fixture that the server
 * scenarios of the MCP conformance suite ask for at revision 2025-11-25.
 *
 *   node --import tsx test/fakes/everything.ts
 *
 * Listens on 127.0.0.1:PORT (default: any free port), serves /mcp, and prints one line, `listening <port>`.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { completable } from '@modelcontextprotocol/sdk/server/completable.js'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport, type EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, LoggingLevelSchema, McpError, SetLevelRequestSchema,
  SubscribeRequestSchema, UnsubscribeRequestSchema, type CallToolResult, type ContentBlock,
  type ElicitRequestFormParams, type JSONRPCMessage, type LoggingLevel, type ServerNotification, type ServerRequest,
  type Tool
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { isLocal, png, schema202012, wav } from './everything-shared.ts'

const maxEvents = 1_000
const retryMs = 200
const stepMs = 50

/** What a tool gets to work with, besides its arguments. */
interface Call {
  server: Server
  extra: RequestHandlerExtra<ServerRequest, ServerNotification>
  /** Sends a log message on the stream of this call, if the session's log level lets it through. */
  log: (level: LoggingLevel, data: string) => Promise<void>
}

interface Fixture {
  description: string
  inputSchema?: Tool['inputSchema']
  run: (args: Record<string, unknown>, call: Call) => ContentBlock[] | string | Promise<ContentBlock[] | string>
}

const image: ContentBlock = { type: 'image', data: png, mimeType: 'image/png' }
const resource = (uri: string, mimeType: string, text: string): ContentBlock => ({ type: 'resource', resource: { uri, mimeType, text } })

/** The input schema of a tool that takes these strings, all of them required. */
const strings = (...names: string[]): Tool['inputSchema'] =>
  ({ type: 'object', properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])), required: names })

async function elicit (
  { server, extra }: Call,
  message: string,
  requestedSchema: ElicitRequestFormParams['requestedSchema']
): Promise<string> {
  const { action, content } = await server.elicitInput({ message, requestedSchema }, { relatedRequestId: extra.requestId })
  return `action=${action}, content=${JSON.stringify(content ?? {})}`
}

const watched = { uri: 'test://watched-resource', version: 1 }

const tools: Record<string, Fixture> = {
  test_simple_text: { description: 'Returns one text', run: () => 'This is a simple text response for testing.' },
  test_image_content: { description: 'Returns an image', run: () => [image] },
  test_audio_content: {
    description: 'Returns a sound',
    run: () => [{ type: 'audio', data: wav, mimeType: 'audio/wav' }]
  },
  test_embedded_resource: {
    description: 'Returns an embedded resource',
    run: () => [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')]
  },
  test_multiple_content_types: {
    description: 'Returns a text, an image and an embedded resource',
    run: () => [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      resource('test://mixed-content-resource', 'application/json', JSON.stringify({ test: 'data', value: 123 }))
    ]
  },
  test_error_handling: {
    description: 'Always fails',
    run: () => { throw new Error('This tool intentionally returns an error for testing') }
  },
  test_tool_with_logging: {
    description: 'Logs three messages while it runs',
    async run (_args, { log }) {
      for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await log('info', message)
        await delay(stepMs)
      }
      return 'Logged three messages.'
    }
  },
  test_tool_with_progress: {
    description: 'Reports its progress three times, to whoever gave a progress token',
    async run (_args, { extra }) {
      const progressToken = extra._meta?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
        }
        await delay(stepMs)
      }
      return 'VisibleServer 100 of 100.'
    }
  },
  test_sampling: {
    description: 'Asks the client for a message of its model',
    inputSchema: strings('prompt'),
    async run (args, { server, extra }) {
      if (server.getClientCapabilities()?.sampling === undefined) throw new Error('The client does not support sampling')
      const { content } = await server.createMessage(
        { messages: [{ role: 'user', content: { type: 'text', text: String(args.prompt) } }], maxTokens: 100 },
        { relatedRequestId: extra.requestId }
      )
      return `LLM response: ${content.type === 'text' ? content.text : JSON.stringify(content)}`
    }
  },
  test_elicitation: {
    description: 'Asks the user for a name and an address',
    inputSchema: strings('message'),
    run: async (args, call) => `User response: ${await elicit(call, String(args.message), {
      type: 'object',
      properties: {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" }
      },
      required: ['username', 'email']
    })}`
  },
  test_elicitation_sep1034_defaults: {
    description: 'Asks the user for a value of each primitive type, with defaults',
    run: async (_args, call) => `Elicitation completed: ${await elicit(call, 'Please check these values', {
      type: 'object',
      properties: {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true }
      }
    })}`
  },
  test_elicitation_sep1330_enums: {
    description: 'Asks the user to choose, with each kind of enum schema',
    run: async (_args, call) => `Elicitation completed: ${await elicit(call, 'Please choose', {
      type: 'object',
      properties: {
        untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
        titledSingle: { type: 'string', oneOf: titled('Option') },
        legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
        untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
        titledMulti: { type: 'array', items: { anyOf: titled('Choice') } }
      }
    })}`
  },
  test_reconnection: {
    description: 'Closes the stream of its call (where the client can resume it) before it answers',
    async run (_args, { extra }) {
      extra.closeSSEStream?.()
      await delay(2 * stepMs)
      return 'Answered after the stream was closed.'
    }
  },
  test_update_watched_resource: {
    description: `Changes ${watched.uri}, which its subscribers are told`,
    async run () {
      watched.version += 1
      await Promise.all([...subscribers].map(async (server) => { await server.sendResourceUpdated({ uri: watched.uri }) }))
      return `Version ${watched.version}.`
    }
  },
  json_schema_2020_12_tool: {
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: schema202012,
    run: (args) => `Called with ${JSON.stringify(args)}.`
  }
}

function titled (noun: string): Array<{ const: string, title: string }> {
  return ['First', 'Second', 'Third'].map((ordinal, i) => ({ const: `value${i + 1}`, title: `${ordinal} ${noun}` }))
}

/** The servers of the sessions that have subscribed to the watched resource. */
const subscribers = new Set<Server>()

/** One server, for one session. */
function createMcpServer (): McpServer {
  const mcp = new McpServer(
    { name: 'everything-fixture', version: '1.0.0' },
    { capabilities: { tools: {}, resources: { subscribe: true }, logging: {} } }
  )
  addTools(mcp.server)
  addResources(mcp)
  addPrompts(mcp)
  return mcp
}

// Not with registerTool(): that takes Zod schemas only, which would lose the JSON Schema keywords.
function addTools (server: Server): void {
  let lowest: LoggingLevel = 'debug'
  const severity = (level: LoggingLevel): number => LoggingLevelSchema.options.indexOf(level)
  server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    lowest = params.level
    return {}
  })

  const list = Object.entries(tools).map(([name, { description, inputSchema }]): Tool =>
    ({ name, description, inputSchema: inputSchema ?? { type: 'object', properties: {} } }))
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: list }))

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra): Promise<CallToolResult> => {
    const tool = Object.hasOwn(tools, params.name) ? tools[params.name] : undefined
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Tool ${params.name} not found`)
    const log: Call['log'] = async (level, data) => {
      if (severity(level) >= severity(lowest)) {
        await extra.sendNotification({ method: 'notifications/message', params: { level, logger: params.name, data } })
      }
    }
    try {
      const content = await tool.run(params.arguments ?? {}, { server, extra, log })
      return { content: typeof content === 'string' ? [{ type: 'text', text: content }] : content }
    } catch (error) {
      return { content: [{ type: 'text', text: error instanceof Error ? error.message : String(error) }], isError: true }
    }
  })
}

function addResources (mcp: McpServer): void {
  mcp.registerResource('static-text', 'test://static-text', { description: 'A text that never changes', mimeType: 'text/plain' },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }] }))

  mcp.registerResource('static-binary', 'test://static-binary', { description: 'An image that never changes', mimeType: 'image/png' },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: 'image/png', blob: png }] }))

  mcp.registerResource('watched', watched.uri, { description: 'A text that test_update_watched_resource changes', mimeType: 'text/plain' },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: `Version ${watched.version} of the watched resource.` }] }))

  const template = new ResourceTemplate('test://template/{id}/data', {
    list: undefined,
    complete: { id: startingWith('123', '124', '456') }
  })
  mcp.registerResource(
    'template',
    template,
    { description: 'The data of an id', mimeType: 'application/json' },
    ({ href: uri }, { id }) => ({
      contents: [
        { uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }) }
      ]
    })
  )

  mcp.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    if (params.uri === watched.uri) subscribers.add(mcp.server)
    return {}
  })
  mcp.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    if (params.uri === watched.uri) subscribers.delete(mcp.server)
    return {}
  })
}

function addPrompts (mcp: McpServer): void {
  const messages = (...contents: Array<ContentBlock | string>) => ({
    messages: contents.map((content) => ({
      role: 'user' as const,
      content: typeof content === 'string' ? { type: 'text' as const, text: content } : content
    }))
  })

  mcp.registerPrompt('test_simple_prompt', { description: 'A prompt without arguments' },
    () => messages('This is a simple prompt for testing.'))

  mcp.registerPrompt('test_prompt_with_arguments', {
    description: 'A prompt that quotes its arguments',
    argsSchema: {
      arg1: completable(z.string().describe('First test argument'), startingWith('paris', 'park', 'party', 'test')),
      arg2: z.string().describe('Second test argument')
    }
  }, ({ arg1, arg2 }) => messages(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))

  mcp.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A prompt that embeds a resource', argsSchema: { resourceUri: z.string().describe('URI of the resource to embed') } },
    ({ resourceUri }) =>
      messages(resource(resourceUri, 'text/plain', 'Embedded resource content for testing.'), 'Please process the embedded resource above.')
  )

  mcp.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image' },
    () => messages(image, 'Please analyze the image above.'))
}

/** A completer that offers those of the values that start with what has been typed. */
function startingWith (...values: string[]): (typed: string) => string[] {
  return (typed) => values.filter((value) => value.startsWith(typed))
}

/** The last events of one session, of all its streams, so that a client can resume any of them. */
function createEventStore (): EventStore {
  const events: Array<{ id: string, streamId: string, message: JSONRPCMessage }> = []
  let count = 0
  return {
    async storeEvent (streamId, message) {
      const id = `event-${++count}`
      events.push({ id, streamId, message })
      if (events.length > maxEvents) events.shift()
      return id
    },
    async getStreamIdForEventId (id) {
      return events.find((event) => event.id === id)?.streamId
    },
    async replayEventsAfter (lastEventId, { send }) {
      const index = events.findIndex((event) => event.id === lastEventId)
      const streamId = events[index]?.streamId
      if (streamId === undefined) throw new Error(`Unknown event ${lastEventId}`)
      for (const event of events.slice(index + 1)) {
        // A priming event is kept as {} and is no message.
        if (event.streamId === streamId && Object.keys(event.message).length > 0) await send(event.id, event.message)
      }
      return streamId
    }
  }
}

const sessions = new Map<string, StreamableHTTPServerTransport>()

/** Opens a session if the request turns out to be an `initialize`; the transport refuses every other. */
async function openSession (req: IncomingMessage, res: ServerResponse): Promise<void> {
  const mcp = createMcpServer()
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: createEventStore(),
    retryInterval: retryMs,
    onsessioninitialized: (id) => { sessions.set(id, transport) }
  })
  mcp.server.onclose = () => {
    if (transport.sessionId !== undefined) sessions.delete(transport.sessionId)
    subscribers.delete(mcp.server)
  }
  await mcp.connect(transport)
  await transport.handleRequest(req, res)
  if (transport.sessionId === undefined) await mcp.close()
}

function refuse (res: ServerResponse, status: number, message: string): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }))
}

async function handle (req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (!isLocal(req.headers)) { refuse(res, 403, 'Forbidden Host or Origin'); return }
  if (new URL(req.url ?? '/', 'http://localhost').pathname !== '/mcp') { refuse(res, 404, 'Not found'); return }
  const id = req.headers['mcp-session-id']
  if (id === undefined) { await openSession(req, res); return }
  const transport = sessions.get(String(id))
  if (transport === undefined) { refuse(res, 404, 'Session not found'); return }
  await transport.handleRequest(req, res)
}

const http = createServer((req, res) => {
  handle(req, res).catch((error: unknown) => {
    console.error(error)
    if (res.headersSent) res.destroy()
    else refuse(res, 500, 'Internal error')
  })
})
http.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening ${(http.address() as AddressInfo).port}`)
})

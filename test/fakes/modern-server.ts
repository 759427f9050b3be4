// An MCP server of both eras, or of the modern one alone, on the official SDK. In a process of its own it speaks stdio:
//
//   node --import tsx test/fakes/modern-server.ts [modern]
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { argv } from 'node:process'
import { createMcpHandler, inputRequired, ProtocolError, Server, type InputRequiredResult, type JSONObject, type ServerContext } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Cleanup } from '../helpers/hub.ts'
import { answerBy, bodyOf } from './answer-by.ts'

type Json = Record<string, unknown>
interface Result { [key: string]: unknown, content: Array<{ type: 'text', text: string }> }
const said = (text: string): Result => ({ content: [{ type: 'text', text }] })
const wait = async (ms: number): Promise<void> => { await new Promise((resolve) => { setTimeout(resolve, ms) }) }

const form = (message: string): Json => ({
  message,
  requestedSchema: { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'] }
})
const questions: Record<string, () => Json> = {
  elicitation: () => inputRequired.elicit(form('Who?') as Parameters<typeof inputRequired.elicit>[0]) as unknown as Json,
  sampling: () => inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: 'Guess' } }],
    maxTokens: 5
  }) as unknown as Json,
  roots: () => inputRequired.listRoots() as unknown as Json,
  url: () => ({ method: 'elicitation/create', params: { mode: 'url', message: 'Open', url: 'https://example.com/consent' } })
}
const asking = (kinds: readonly string[], state?: string): InputRequiredResult => ({
  resultType: 'input_required',
  inputRequests: Object.fromEntries(kinds.map((kind) => [kind, questions[kind]?.()])),
  ...(state !== undefined && { requestState: state })
}) as unknown as InputRequiredResult

const tool = (name: string, properties: Record<string, JSONObject> = {}): {
  name: string, description: string, inputSchema: { type: 'object', properties: Record<string, JSONObject> }
} => ({ name, description: name, inputSchema: { type: 'object', properties } })
const string = { type: 'string' }

/** What the servers of one process have in common: those of HTTP live as long as a request. */
export class World {
  readonly tools = [
    tool('echo', { message: string }),
    tool('count', { steps: { type: 'integer' } }),
    tool('stall'),
    tool('cancelled'),
    tool('ask', { kinds: { type: 'array', items: string } }),
    tool('twice'),
    tool('log'),
    tool('meta'),
    tool('grow'),
    tool('touch', { uri: string }),
    tool('where', {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      at: { type: 'object', properties: { zone: { type: 'integer', 'x-mcp-header': 'Zone' } } }
    })
  ]

  /** The reasons why calls of `stall` ended. */
  readonly cancelled: string[] = []
  /** Calls of `stall` that are open. */
  hanging = 0
  changed: () => void = () => {}
  updated: (uri: string) => void = () => {}

  make (): Server {
    const server = new Server({ name: 'modern', version: '1.2.3' }, {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: {},
        logging: {},
        completions: {}
      },
      instructions: 'Ask it anything.'
    })
    server.setRequestHandler('tools/list', async () => ({ tools: this.tools }))
    server.setRequestHandler('tools/call', async ({ params }, context) => await this.#call(params.name, params.arguments ?? {}, context))
    server.setRequestHandler('prompts/list', async () => ({ prompts: [{ name: 'greet' }] }))
    server.setRequestHandler('prompts/get', async (_request, { mcpReq: { inputResponses } }) => inputResponses?.elicitation === undefined
      ? asking(['elicitation'])
      : { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: JSON.stringify(inputResponses) } }] })
    server.setRequestHandler('resources/list', async () => ({
      resources: [{ uri: 'test://one', name: 'one' }, { uri: 'test://two', name: 'two' }]
    }))
    server.setRequestHandler('resources/templates/list', async () => ({ resourceTemplates: [] }))
    server.setRequestHandler('resources/read', async ({ params: { uri } }) => ({ contents: [{ uri, text: `content of ${uri}` }] }))
    server.setRequestHandler('completion/complete', async () => ({ completion: { values: ['a', 'b'] } }))
    return server
  }

  async #call (name: string, args: Json, { mcpReq, http }: ServerContext): Promise<Result | InputRequiredResult> {
    switch (name) {
      case 'echo': return said(String(args.message))
      case 'meta': return said(JSON.stringify({ meta: mcpReq._meta, envelope: mcpReq.envelope }))
      case 'where': {
        const schema = this.tools.find((each) => each.name === name)?.inputSchema
        const header = Object(schema?.properties.region)['x-mcp-header'] as string
        if (http?.req && args.region !== undefined && !http.req.headers.has(`mcp-param-${header}`)) {
          throw new ProtocolError(-32020, `Header mismatch: Mcp-Param-${header} is missing`)
        }
        return said(JSON.stringify(args))
      }
      case 'count': {
        const progressToken = mcpReq._meta?.progressToken
        const total = progressToken === undefined ? 0 : Number(args.steps)
        for (let progress = 1; progress <= total; progress++) {
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: progressToken ?? '', progress, total } })
        }
        return said('counted')
      }
      case 'log':
        for (const level of ['debug', 'info', 'error'] as const) await mcpReq.log(level, `${level} message`)
        return said('logged')
      case 'stall': {
        this.hanging++
        await new Promise((resolve) => { mcpReq.signal.addEventListener('abort', resolve, { once: true }) })
        this.hanging--
        this.cancelled.push(String(mcpReq.signal.reason))
        return said('stalled')
      }
      case 'cancelled': return said(String(args.hanging === true ? this.hanging : this.cancelled.length))
      case 'ask': {
        const kinds = args.kinds as string[]
        if (mcpReq.inputResponses === undefined) return asking(kinds, 'state of ask')
        return said(JSON.stringify({ state: mcpReq.requestState(), answers: mcpReq.inputResponses }))
      }
      case 'twice': {
        const round = Number(mcpReq.requestState() ?? 0)
        return round < 2 ? asking(['elicitation'], String(round + 1)) : said(`after ${round} rounds`)
      }
      case 'grow':
        this.tools.push(tool(`grown-${this.tools.length}`))
        this.changed()
        return said('grown')
      case 'touch':
        this.updated(String(args.uri))
        return said('touched')
      default:
        await wait(0)
        throw new Error(`no such tool: ${name}`)
    }
  }
}

export interface ModernServer {
  readonly url: string
  readonly world: World
  /** Every request, oldest first. */
  readonly seen: Array<{ method: string, headers: IncomingHttpHeaders, body: Json | undefined }>
  /** Requests whose answers are not over. */
  readonly open: () => number
  readonly stop: () => Promise<void>
}

/** Serves over HTTP, in this process. @param modern true: earlier revisions are refused */
export async function startModern<Served extends World = World> (
  t: Cleanup, { modern = false, port = 0, world = new World() as Served } = {}
): Promise<ModernServer & { readonly world: Served }> {
  const handler = createMcpHandler(() => world.make(), { legacy: modern ? 'reject' : 'stateless' })
  world.changed = () => { handler.notify.toolsChanged() }
  world.updated = (uri) => { handler.notify.resourceUpdated(uri) }
  const seen: ModernServer['seen'] = []
  let open = 0
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const text = await bodyOf(request)
      seen.push({ method: request.method ?? '', headers: request.headers, body: text === '' ? undefined : JSON.parse(text) as Json })
      open++
      response.once('close', () => { open-- })
      await answerBy(handler, request, response, text)
    }
    serve().catch(() => { response.destroy() })
  })
  await new Promise<void>((resolve) => { server.listen(port, '127.0.0.1', resolve) })
  const stop = async (): Promise<void> => {
    await handler.close()
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => { server.close(resolve) })
  }
  t.after(stop)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, world, seen, open: () => open, stop }
}

if (/modern-server\.[jt]s$/.test(argv[1] ?? '')) {
  const world = new World()
  let server: Server | undefined
  world.changed = () => { void server?.notification({ method: 'notifications/tools/list_changed' }) }
  world.updated = (uri) => { void server?.notification({ method: 'notifications/resources/updated', params: { uri } }) }
  serveStdio(() => (server = world.make()), { legacy: argv.includes('modern') ? 'reject' : 'serve' })
}

/**
 * An MCP server of both eras, on the official SDK's second line, with every fixture that the server scenarios of the MCP conformance suite
 * ask for at revision 2026-07-28.
 *
 *   node --import tsx test/fakes/everything-modern.ts
 *
 * Listens on 127.0.0.1:PORT (default: any free port), serves /mcp, and prints one line, `listening <port>`.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpHandler, ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import { answerBy, bodyOf } from './answer-by.ts'
import { isLocal, png, schema202012, wav } from './everything-shared.ts'
import { answerTask, extension, taskTools } from './everything-tasks.ts'

type Json = Record<string, unknown>

const text = (value: string): Json => ({ type: 'text', text: value })
const image = { type: 'image', data: png, mimeType: 'image/png' }
const embedded = (uri: string, mimeType: string, value: string): Json => ({ type: 'resource', resource: { uri, mimeType, text: value } })
const said = (...content: Array<Json | string>): Json =>
  ({ content: content.map((each) => typeof each === 'string' ? text(each) : each) })

const elicit = (message: string, property = 'name', type = 'string'): Json => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { [property]: { type } }, required: [property] } }
})
const sample = (value: string): Json =>
  ({ method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: text(value) }], maxTokens: 100 } })
const roots = { method: 'roots/list', params: {} }
const asking = (inputRequests: Record<string, Json>, requestState?: string): Json =>
  ({ resultType: 'input_required', inputRequests, ...(requestState === undefined ? {} : { requestState }) })

// States are signed, since they come back from a client.
const secret = randomBytes(32)
const signature = (value: string): string => createHmac('sha256', secret).update(value).digest('base64url')
const signed = (value: string): string => `${value}.${signature(value)}`
function opened (state: string | undefined): string | undefined {
  if (state === undefined) return undefined
  const [value = '', given = ''] = state.split('.')
  const [expected, actual] = [Buffer.from(signature(value)), Buffer.from(given)]
  if (state !== `${value}.${given}` || expected.length !== actual.length || !timingSafeEqual(expected, actual)) {
    throw new ProtocolError(-32602, 'Invalid params: the requestState was changed')
  }
  return value
}

interface Fixture {
  inputSchema?: Json
  run: (args: Json, context: ServerContext['mcpReq'], answers: Record<string, Json>, state: string | undefined) => Json | Promise<Json>
}

const isAnswer = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
/** A tool that asks one thing, under a key. */
const asks = (key: string, question: Json): Fixture => ({
  run: (_args, _context, answers) => answers[key] === undefined ? asking({ [key]: question }) : said(`Got ${JSON.stringify(answers[key])}`)
})
const capabilitiesOf = ({ envelope }: ServerContext['mcpReq']): Json =>
  (envelope as Json | undefined)?.['io.modelcontextprotocol/clientCapabilities'] as Json | undefined ?? {}

/** How often a list was changed: descriptions say so. */
let changes = 0

const tools: Record<string, Fixture> = {
  greet: { inputSchema: { type: 'object', properties: { name: { type: 'string' } } }, run: ({ name }) => said(`Hello, ${String(name)}!`) },
  // Answered by everything-tasks.ts.
  ...Object.fromEntries(taskTools.map((name) => [name, { run: () => said('not a task') }])),
  test_simple_text: { run: () => said('This is a simple text response for testing.') },
  test_image_content: { run: () => said(image) },
  test_audio_content: { run: () => said({ type: 'audio', data: wav, mimeType: 'audio/wav' }) },
  test_embedded_resource: { run: () => said(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')) },
  test_multiple_content_types: {
    run: () => said('Multiple content types test:', image, embedded('test://mixed-content-resource', 'application/json', '{"test":"data"}'))
  },
  test_error_handling: { run: () => ({ ...said('This tool intentionally returns an error for testing'), isError: true }) },
  test_tool_with_progress: {
    run: async (_args, context) => {
      const progressToken = context._meta?.progressToken
      for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
        await context.notify({ method: 'notifications/progress', params: { progressToken: progressToken ?? '', progress, total: 100 } })
      }
      return said('Done.')
    }
  },
  test_missing_capability: {
    run: (_args, context) => {
      if (capabilitiesOf(context).sampling !== undefined) return said('The client can sample.')
      throw new ProtocolError(-32021, 'The client has to support sampling', { requiredCapabilities: { sampling: {} } })
    }
  },
  test_streaming_elicitation: asks('user_name', elicit('What is your name?')),
  test_logging_tool: { run: async (_args, context) => { await context.log('info', 'It runs.'); return said('Logged.') } },
  test_trigger_tool_change: { run: () => { changes++; handler.notify.toolsChanged(); return said('Changed.') } },
  test_trigger_prompt_change: { run: () => { changes++; handler.notify.promptsChanged(); return said('Changed.') } },
  json_schema_2020_12_tool: {
    inputSchema: schema202012,
    run: (args) => said(`Called with ${JSON.stringify(args)}.`)
  },
  test_x_mcp_header: {
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } }, required: ['region'] },
    run: ({ region }) => said(String(region))
  },
  test_input_required_result_elicitation: asks('user_name', elicit('What is your name?')),
  test_input_required_result_sampling: asks('capital_question', sample('What is the capital of France?')),
  test_input_required_result_list_roots: asks('client_roots', roots),
  test_input_required_result_request_state: {
    run: (_args, _context, { confirm }, state) => confirm === undefined
      ? asking({ confirm: elicit('Please confirm', 'ok', 'boolean') }, signed('one'))
      : said(state === 'one' ? 'state-ok' : 'state-lost')
  },
  test_input_required_result_multiple_inputs: {
    run: (_args, _context, answers) => ['user_name', 'greeting', 'client_roots'].every((key) => answers[key] !== undefined)
      ? said('All are there.')
      : asking({ user_name: elicit('What is your name?'), greeting: sample('Generate a greeting'), client_roots: roots }, signed('many'))
  },
  test_input_required_result_multi_round: {
    run: (_args, _context, { step1, step2 }, state) => {
      if (state === 'second' && step2 !== undefined) return said('Both steps are done.')
      if (state === 'first' && step1 !== undefined) return asking({ step2: elicit('Step 2: your favorite color?', 'color') }, signed('second'))
      return asking({ step1: elicit('Step 1: your name?') }, signed('first'))
    }
  },
  test_input_required_result_tampered_state: {
    run: (_args, _context, { confirm }, state) =>
      state === undefined || confirm === undefined ? asking({ confirm: elicit('Please confirm', 'ok', 'boolean') }, signed('it')) : said('state-ok')
  },
  test_input_required_result_capabilities: {
    run: (_args, context, answers) => {
      if (Object.keys(answers).length > 0) return said('Got it.')
      const can = capabilitiesOf(context)
      return asking({
        ...(can.sampling === undefined ? {} : { sampled: sample('Say something') }),
        ...(can.elicitation === undefined ? {} : { elicited: elicit('What is your name?') })
      })
    }
  }
}

const resources: Record<string, Json> = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: png }
}
const prompts: Record<string, (args: Json, answers: Record<string, Json>) => Json> = {
  test_simple_prompt: () => messages('This is a simple prompt for testing.'),
  test_prompt_with_arguments: ({ arg1, arg2 }) => messages(`Prompt with arguments: arg1='${String(arg1)}', arg2='${String(arg2)}'`),
  test_prompt_with_embedded_resource: ({ resourceUri }) =>
    messages(embedded(String(resourceUri), 'text/plain', 'Embedded resource content for testing.'), 'Please process it.'),
  test_prompt_with_image: () => messages(image, 'Please analyze the image above.'),
  test_input_required_result_prompt: (_args, answers) => answers.user_context === undefined
    ? asking({ user_context: elicit('What context should the prompt use?', 'context') })
    : messages(`The context is ${JSON.stringify(answers.user_context)}`)
}
const named: Record<string, string[]> = {
  test_prompt_with_arguments: ['arg1', 'arg2'], test_prompt_with_embedded_resource: ['resourceUri']
}
const messages = (...content: Array<Json | string>): Json =>
  ({ messages: content.map((each) => ({ role: 'user', content: typeof each === 'string' ? text(each) : each })) })

const answersOf = ({ inputResponses }: ServerContext['mcpReq']): Record<string, Json> =>
  Object.fromEntries(Object.entries(inputResponses ?? {}).filter((entry): entry is [string, never] => isAnswer(entry[1])))

/** One server, for one request. The SDK's types of results are narrower than what a fixture says. */
function createServerOfFixtures (): Server {
  const changing = { listChanged: true }
  const capabilities = {
    tools: changing,
    prompts: changing,
    resources: { subscribe: true, ...changing },
    logging: {},
    completions: {},
    extensions: { [extension]: {} }
  }
  const server = new Server({ name: 'everything-modern', version: '1.0.0' }, { capabilities })
  server.setRequestHandler('tools/list', async () => ({
    tools: Object.entries(tools).map(([name, { inputSchema = { type: 'object', properties: {} } }]) =>
      ({ name, description: `${name} ${changes}`, inputSchema: inputSchema as { type: 'object' } }))
  }))
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {} } }, { mcpReq }) => {
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    if (!tool) throw new ProtocolError(-32602, `Unknown tool: ${name}`)
    return await tool.run(args, mcpReq, answersOf(mcpReq), opened(mcpReq.requestState())) as never
  })
  server.setRequestHandler('resources/list', async () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, mimeType: String(mimeType) }))
  }))
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }]
  }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
    const content = id === undefined ? resources[uri] : { mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }
    if (!content) throw new ProtocolError(-32602, 'Resource not found', { uri })
    return { contents: [{ uri, ...content }] } as never
  })
  server.setRequestHandler('prompts/list', async () => ({
    prompts: Object.keys(prompts).map((name) =>
      ({ name, description: `${name} ${changes}`, arguments: (named[name] ?? []).map((each) => ({ name: each, required: true })) }))
  }))
  server.setRequestHandler('prompts/get', async ({ params: { name, arguments: args = {} } }, { mcpReq }) => {
    const prompt = Object.hasOwn(prompts, name) ? prompts[name] : undefined
    if (!prompt) throw new ProtocolError(-32602, `Unknown prompt: ${name}`)
    return prompt(args, answersOf(mcpReq)) as never
  })
  server.setRequestHandler('completion/complete', async ({ params: { argument } }) => ({
    completion: { values: ['paris', 'park', 'party', 'test'].filter((value) => value.startsWith(argument.value)), hasMore: false }
  }))
  return server
}

const handler = createMcpHandler(createServerOfFixtures, { legacy: 'stateless' })

async function serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!isLocal(request.headers)) {
    response.writeHead(403).end()
    return
  }
  const text = await bodyOf(request)
  const parsed = text === '' ? {} : JSON.parse(text) as Json
  const task = answerTask(parsed, request)
  if (task) {
    response.writeHead(task.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: parsed.id, ...task.message }))
    return
  }
  await answerBy(handler, request, response, text)
}

const http = createServer((request, response) => { serve(request, response).catch(() => { response.destroy() }) })
http.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => { console.log(`listening ${(http.address() as AddressInfo).port}`) })

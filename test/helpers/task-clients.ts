// Four clients that call a tool that may run as a task: of each era, one that knows tasks and one that does not.
import { createTaskSessionFromClient, type TaskEnabledSession } from '@modelcontextprotocol/ext-tasks/client'
import { ElicitRequestSchema, type CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { agent, KEY, send, text, type AgentOptions, type Json, type Message } from './client.ts'
import type { Cleanup } from './hub.ts'
import { modernAgent } from './modern-client.ts'
import { modernRequest, prefix, version, type ModernCall } from './modern-request.ts'

/** How a call ended: the kinds of the messages on the way, and the text of its result. */
export interface TaskOutcome { readonly steps: string[], readonly text: string, readonly isError: boolean }
/** Calls a tool with the argument `text: "x"`. */
export type TaskCaller = (t: Cleanup, url: string, tool: string, given?: string) => Promise<TaskOutcome>

/** Answers every elicitation. */
export const askable: AgentOptions = {
  capabilities: { elicitation: {} },
  prepare: (client) => { client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ann' } })) }
}
const outcome = (result: unknown, ...steps: string[]): TaskOutcome =>
  ({ steps, text: text(result), isError: (result as Json).isError === true })

/** The SDK's client of 2025-11-25, by `task`. */
export const legacyWithTasks: TaskCaller = async (t, url, tool, given = 'x') => {
  const client = await agent(t, url, askable)
  await client.listTools()
  const steps: string[] = []
  const stream = client.experimental.tasks.callToolStream({ name: tool, arguments: { text: given } }, undefined, { task: {} })
  for await (const message of stream) {
    if (message.type === 'result') return outcome(message.result as CallToolResult, ...steps)
    if (message.type === 'error') return { steps, text: message.error.message.replace(/[\w.-]{32,}/, 'ID'), isError: true }
    if (steps.at(-1) !== message.type) steps.push(message.type)
  }
  throw new Error('the stream had no outcome')
}

/** The SDK's client of 2025-11-25, without. */
export const legacyWithoutTasks: TaskCaller = async (t, url, tool, given = 'x') =>
  outcome(await (await agent(t, url, askable)).callTool({ name: tool, arguments: { text: given } }))

/** The SDK's client of 2026-07-28, which does not know the extension. */
export const modernWithoutTasks: TaskCaller = async (t, url, tool, given = 'x') => {
  const { client } = await modernAgent(t, url, { capabilities: { elicitation: { form: {} } } })
  return await client.callTool({ name: tool, arguments: { text: given } })
    .then((result) => outcome(result), (error: unknown) => ({ steps: [], text: String((error as Json).code), isError: true }))
}

/** A session of the extension's own client. @param asked notes what it is asked */
export async function taskSession (t: Cleanup, url: string, asked: unknown[] = [], key = KEY): Promise<TaskEnabledSession> {
  const { client } = await modernAgent(t, url, { capabilities: { elicitation: { form: {} } }, key })
  let id = 0
  const session = createTaskSessionFromClient(client, {
    endpointId: url,
    v2RequestFraming: {
      protocolVersion: version, clientInfo: { name: 'tasks', version: '1' }, clientCapabilities: { elicitation: { form: {} } }
    },
    rawDispatch: async (request, options) => {
      const { method, params } = request as { method: string, params: Json }
      const headers = {
        'mcp-protocol-version': version,
        'mcp-method': method,
        ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
        ...options?.context?.headers
      }
      const { messages } = await send(url, { key, headers, body: { jsonrpc: '2.0', id: ++id, method, params } })
      const { result, error } = messages.find((message) => message.id === id) ?? {}
      return (error === undefined ? { kind: 'result', result } : { kind: 'error', error }) as never
    },
    onInputRequest: async (request) => {
      asked.push(request)
      return { action: 'accept', content: { name: 'Ann' } } as never
    }
  })
  t.after(async () => { await session.close() })
  return session
}

/** The client of the extension (`@modelcontextprotocol/ext-tasks`). */
export const modernWithTasks: TaskCaller = async (t, url, tool, given = 'x') => {
  const execution = await (await taskSession(t, url)).callTool(tool, { text: given })
  const { outcome: ended } = await execution.settle()
  if (ended.status !== 'completed') return { steps: [execution.kind], text: ended.status, isError: true }
  return outcome(ended.result, execution.kind)
}

/** The extension as a request declares it. */
export const withTasks: Json = { extensions: { [`${prefix}tasks`]: {} }, elicitation: { form: {} } }

/** One request of a modern client that knows tasks. */
export async function askWithTasks (url: string, method: string, params: Json, more: ModernCall = {}): Promise<Message> {
  const { headers, body } = modernRequest(method, { params, capabilities: withTasks, ...more })
  return (await send(url, { headers, body, key: null })).messages.at(-1) ?? {}
}

/** The configs of servers that everybody sees, by their names. */
export const publicServers = (urls: Record<string, string>): Json =>
  Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url, visibility: 'public' }]))

// Two servers with the same tools, most of which run as tasks: one of 2025-11-25 on the official SDK, one of 2026-07-28 with the
// extension io.modelcontextprotocol/tasks, by hand (no SDK serves that).
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { InMemoryTaskMessageQueue, InMemoryTaskStore, type TaskStore } from '@modelcontextprotocol/sdk/experimental/tasks'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema, type Result, type ServerNotification } from '@modelcontextprotocol/sdk/types.js'
import type { Json } from '../helpers/client.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'
import { startBareModern, type BareAnswer, type BareModern, type BareRequest } from './bare-modern.ts'

export const extension = 'io.modelcontextprotocol/tasks'

/** Each tool, and whether it runs as a task: `required`, `optional`, or never. */
const tools: Readonly<Record<string, string | undefined>> = {
  echo: undefined, may: 'optional', long: 'required', ask: 'required', fail: 'required', held: 'required'
}
const inputSchema = { type: 'object', properties: { text: { type: 'string' } } }
const question = {
  mode: 'form' as const,
  message: 'Who?',
  requestedSchema: { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'] }
}
const said = (text: string, isError?: boolean): Json => ({ content: [{ type: 'text', text }], ...(isError === true && { isError }) })

/** What the tasks of both servers do. */
export class TaskWorld {
  readonly #held = new Set<() => void>()
  /** The names of the tools whose tasks were cancelled. */
  readonly cancelled: string[] = []

  /** Ends the tasks of `held`. */
  release (): void { for (const end of this.#held) end() }

  /** Reports progress of the task that was begun last, as far as its server can. */
  report: () => void = () => {}

  /** The id of the next tasks of the modern server; undefined: one of their own. */
  nextId: string | undefined

  /** Forgets all tasks of the modern server. */
  forget: () => void = () => {}

  /** How many tasks are held. */
  get held (): number { return this.#held.size }

  /** @param ask puts the question to the client, and resolves with its answer */
  async run (tool: string, text: unknown, ask: () => Promise<Json>): Promise<Json> {
    switch (tool) {
      case 'ask': {
        const { action, content } = await ask() as { action: string, content?: Json }
        return said(`${action} ${String(content?.name)}`)
      }
      case 'fail': return said('it failed', true)
      case 'held': {
        let end = (): void => {}
        const released = new Promise<void>((resolve) => { this.#held.add(end = resolve) })
        await released
        this.#held.delete(end)
        return said('released')
      }
      default: return said(`${tool} ${String(text)}`)
    }
  }
}

export interface TaskServer { readonly url: string, readonly world: TaskWorld }

/**
 * A store whose tasks every session may use.
 * @param onCancel called with the id of a task that is cancelled
 * @param statesInterval whether the state of a task has its poll interval
 */
function sharedStore (onCancel: (id: string) => void, statesInterval: boolean): TaskStore {
  const store = new InMemoryTaskStore()
  return {
    createTask: async (params, id, request) => await store.createTask(params, id, request),
    getTask: async (id) => {
      const task = await store.getTask(id)
      return task === null || statesInterval ? task : { ...task, pollInterval: undefined }
    },
    storeTaskResult: async (id, status, result) => { await store.storeTaskResult(id, status, result) },
    getTaskResult: async (id) => await store.getTaskResult(id),
    updateTaskStatus: async (id, status, message) => {
      await store.updateTaskStatus(id, status, message)
      if (status === 'cancelled') onCancel(id)
    },
    listTasks: async (cursor) => await store.listTasks(cursor)
  }
}

export async function startLegacyTasks (t: Cleanup, statesInterval = true): Promise<TaskServer> {
  const world = new TaskWorld()
  const toolOf = new Map<string, string>()
  const taskStore = sharedStore((id) => { world.cancelled.push(String(toolOf.get(id))) }, statesInterval)
  const taskMessageQueue = new InMemoryTaskMessageQueue()
  const make = (): Server => {
    const capabilities = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }
    const server = new Server({ name: 'legacy-tasks', version: '1' }, { capabilities, taskStore, taskMessageQueue })
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: Object.entries(tools).map(([name, taskSupport]) => ({
        name, inputSchema, ...(taskSupport !== undefined && { execution: { taskSupport } })
      }))
    }) as never)
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
      const { name, arguments: args, task } = params
      if (task === undefined || !extra.taskStore) {
        if (tools[name] === 'required') throw Object.assign(new Error('It runs as a task only'), { code: -32601 })
        return await world.run(name, args?.text, async () => ({})) as Result
      }
      const begun = await extra.taskStore.createTask({ ttl: task.ttl, pollInterval: 20 })
      const { taskId } = begun
      toolOf.set(taskId, name)
      const tell = async (): Promise<void> => {
        const params = await taskStore.getTask(taskId)
        await server.notification({ method: 'notifications/tasks/status', params } as unknown as ServerNotification)
      }
      const progressToken = params._meta?.progressToken ?? ''
      world.report = () => { void server.notification({ method: 'notifications/progress', params: { progressToken, progress: 1 } }) }
      const ask = async (): Promise<Json> => {
        await taskStore.updateTaskStatus(taskId, 'input_required')
        const answer = await server.elicitInput(question, { relatedTask: { taskId }, timeout: 60_000 })
        await taskStore.updateTaskStatus(taskId, 'working')
        return answer as Json
      }
      void world.run(name, args?.text, ask)
        .catch((error: unknown) => said(String(error), true))
        .then(async (result) => {
          await taskStore.storeTaskResult(taskId, result.isError === true ? 'failed' : 'completed', result as Result)
          await tell()
        })
        // It was cancelled.
        .catch(() => {})
      return { task: begun } as unknown as Result
    })
    return server
  }
  const transports = new Map<string, StreamableHTTPServerTransport>()
  // A question keeps its timer until its connection is closed.
  t.after(async () => { for (const transport of transports.values()) await transport.close() })
  const serve = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const id = request.headers['mcp-session-id']
      let transport = typeof id === 'string' ? transports.get(id) : undefined
      if (typeof id === 'string' && !transport) { response.writeHead(404).end(); return }
      if (!transport) {
        const made = transport = new StreamableHTTPServerTransport({
          sessionIdGenerator: () => randomUUID(), onsessioninitialized: (session) => { transports.set(session, made) }
        })
        await make().connect(made as Parameters<Server['connect']>[0])
      }
      await transport.handleRequest(request, response)
    }
    handle().catch(() => { response.destroy() })
  })
  return { url: `http://127.0.0.1:${await listen(t, serve)}/mcp`, world }
}

interface ModernTask { readonly tool: string, state: Json, asked?: (answer: Json) => void }

/** @param declares whether it declares the extension */
export async function startModernTasks (t: Cleanup): Promise<TaskServer & { readonly seen: BareModern['seen'] }> {
  const world = new TaskWorld()
  const tasks = new Map<string, ModernTask>()
  world.forget = () => { tasks.clear() }
  const now = (): string => new Date().toISOString()
  const begin = (tool: string, text: unknown): Json => {
    const state: Json = {
      taskId: world.nextId ?? randomUUID(), status: 'working', createdAt: now(), lastUpdatedAt: now(), ttlMs: 60_000, pollIntervalMs: 20
    }
    const task: ModernTask = { tool, state }
    const set = (more: Json): void => { task.state = { ...task.state, lastUpdatedAt: now(), ...more } }
    tasks.set(String(state.taskId), task)
    const ask = async (): Promise<Json> => {
      set({ status: 'input_required', inputRequests: { who: { method: 'elicitation/create', params: question } } })
      const answer = await new Promise<Json>((resolve) => { task.asked = resolve })
      const { inputRequests: _, ...rest } = task.state
      task.state = { ...rest, status: 'working', lastUpdatedAt: now() }
      return answer
    }
    void world.run(tool, text, ask).then((result) => {
      if (task.state.status !== 'cancelled') set({ status: 'completed', result: { resultType: 'complete', ...result } })
    })
    return { resultType: 'task', ...state }
  }
  const missing = {
    code: -32021, message: 'Missing required client capability', data: { requiredCapabilities: { extensions: { [extension]: {} } } }
  }
  const listed = Object.keys(tools).map((name) => ({ name, inputSchema }))
  const on = async ({ method, params }: BareRequest): Promise<BareAnswer> => {
    if (method === 'tools/list') return { result: { resultType: 'complete', tools: listed, ttlMs: 60_000, cacheScope: 'private' } }
    if (method !== 'tools/call' && !method.startsWith('tasks/')) return undefined
    const declared = (params._meta as Json)['io.modelcontextprotocol/clientCapabilities'] as { extensions?: Json }
    const hasTasks = declared.extensions?.[extension] !== undefined
    if (method === 'tools/call') {
      const name = String(params.name)
      const text = (params.arguments as Json | undefined)?.text
      if (hasTasks && tools[name] !== undefined) return { result: begin(name, text) }
      if (tools[name] === 'required') return { error: missing, status: 400 }
      return { result: { resultType: 'complete', ...await world.run(name, text, async () => ({})) } }
    }
    if (!hasTasks) return { error: missing, status: 400 }
    const task = tasks.get(String(params.taskId))
    if (!task) return { error: { code: -32602, message: 'Failed to retrieve task: Task not found' } }
    switch (method) {
      case 'tasks/get': return { result: { resultType: 'complete', ...task.state } }
      case 'tasks/update':
        task.asked?.((params.inputResponses as { who: Json }).who)
        return { result: { resultType: 'complete' } }
      case 'tasks/cancel':
        if (!['completed', 'failed', 'cancelled'].includes(String(task.state.status))) {
          task.state = { ...task.state, status: 'cancelled', lastUpdatedAt: now() }
          world.cancelled.push(task.tool)
        }
        return { result: { resultType: 'complete' } }
      default: return { error: { code: -32601, message: 'Method not found' }, status: 404 }
    }
  }
  const server = await startBareModern(t, [], on, { tools: {}, extensions: { [extension]: {} } })
  return { url: server.url, seen: server.seen, world }
}

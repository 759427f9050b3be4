// The tools of the conformance suite that run as tasks (extension io.modelcontextprotocol/tasks), by hand: no SDK serves them.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

type Json = Record<string, unknown>
interface Task { state: Json, pending: Set<string>, readonly answers: Json[], resume?: () => void }
export interface TaskReply { readonly status: number, readonly message: Json }

export const extension = 'io.modelcontextprotocol/tasks'
const said = (text: string, more: Json = {}): Json => ({ resultType: 'complete', content: [{ type: 'text', text }], ...more })
const elicit = (message: string): Json => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } } } }
})
const now = (): string => new Date().toISOString()
const fail = (code: number, message: string, status = 200, data?: Json): TaskReply =>
  ({ status, message: { error: { code, message, ...(data && { data }) } } })
const ok = (result: Json): TaskReply => ({ status: 200, message: { result } })

const tasks = new Map<string, Task>()
const set = (task: Task, more: Json): void => {
  if (!['completed', 'failed', 'cancelled'].includes(String(task.state.status))) task.state = { ...task.state, lastUpdatedAt: now(), ...more }
}

/** Begins a task. @param run resolves with the members of its end */
function begin (run: (task: Task) => Promise<Json>): TaskReply {
  const taskId = randomUUID()
  const state = { taskId, status: 'working', createdAt: now(), lastUpdatedAt: now(), ttlMs: 300_000, pollIntervalMs: 100 }
  const task: Task = { state, pending: new Set(), answers: [] }
  tasks.set(taskId, task)
  void run(task).then((end) => { set(task, { inputRequests: undefined, ...end }) })
  return ok({ resultType: 'task', ...state })
}

/** Asks the client under these keys, and waits for all answers. */
async function ask (task: Task, requests: Record<string, Json>): Promise<void> {
  for (const key of Object.keys(requests)) task.pending.add(key)
  set(task, { status: 'input_required', inputRequests: requests })
  await new Promise<void>((resolve) => { task.resume = resolve })
  set(task, { status: 'working', inputRequests: undefined })
}

const completed = (text: string, more: Json = {}): Json => ({ status: 'completed', result: said(text, more) })

/** Each tool: whether it needs a task, and what it does, as a task or at once. */
const tools: Record<string, { needs?: boolean, run: (args: Json, params: Json) => TaskReply }> = {
  slow_compute: {
    run: ({ seconds }) => begin(async () => {
      await new Promise((resolve) => { setTimeout(resolve, Number(seconds) * 1_000).unref() })
      return completed('computed')
    })
  },
  failing_job: { needs: true, run: () => begin(async () => completed('it failed', { isError: true })) },
  protocol_error_job: { run: () => begin(async () => ({ status: 'failed', error: { code: -32603, message: 'it broke' } })) },
  confirm_delete: {
    run: ({ filename }) => begin(async (task) => {
      await ask(task, { confirm: elicit(`Delete ${String(filename)}?`) })
      return completed(JSON.stringify(task.answers))
    })
  },
  multi_input: {
    run: () => begin(async (task) => {
      await ask(task, { one: elicit('One?'), two: elicit('Two?') })
      return completed(JSON.stringify(task.answers))
    })
  },
  test_tool_with_task: {
    needs: true,
    run: (_args, { inputResponses }) => inputResponses === undefined
      ? ok({ resultType: 'input_required', inputRequests: { user_name: elicit('What is your name?') } })
      : begin(async () => completed(JSON.stringify(inputResponses)))
  }
}

export const taskTools = Object.keys(tools)

/** The answer to a request about tasks; undefined: the request is for others. */
export function answerTask (body: Json, { headers }: Pick<IncomingMessage, 'headers'>): TaskReply | undefined {
  const { method, params = {} } = body as { method?: string, params?: Json }
  const name = String(params.name)
  const isCall = method === 'tools/call' && Object.hasOwn(tools, name)
  if (!isCall && method?.startsWith('tasks/') !== true) return undefined
  if (!isCall && !['tasks/get', 'tasks/update', 'tasks/cancel'].includes(String(method))) return fail(-32601, 'Method not found', 404)
  if (headers['mcp-method'] !== method || headers['mcp-name'] !== (isCall ? name : params.taskId)) {
    return fail(-32020, 'Header mismatch', 400)
  }
  const capabilities = (params._meta as Json | undefined)?.['io.modelcontextprotocol/clientCapabilities'] as { extensions?: Json } | undefined
  if (capabilities?.extensions?.[extension] === undefined) {
    if (isCall && tools[name]?.needs !== true) return ok(said('at once'))
    return fail(-32021, 'Missing required client capability', 400, { requiredCapabilities: { extensions: { [extension]: {} } } })
  }
  if (isCall) return tools[name]?.run(params.arguments as Json ?? {}, params)
  const task = tasks.get(String(params.taskId))
  if (!task) return fail(-32602, 'Failed to retrieve task: Task not found')
  return about(task, String(method), params.inputResponses as Json | undefined)
}

function about (task: Task, method: string, responses: Json = {}): TaskReply {
  if (method === 'tasks/get') return ok({ resultType: 'complete', ...task.state })
  if (method === 'tasks/cancel') set(task, { status: 'cancelled', inputRequests: undefined })
  for (const [key, response] of Object.entries(responses)) {
    if (!task.pending.delete(key)) continue
    task.answers.push(response as Json)
    const { [key]: _, ...left } = task.state.inputRequests as Json
    set(task, { inputRequests: left })
    if (task.pending.size === 0) task.resume?.()
  }
  return ok({ resultType: 'complete' })
}

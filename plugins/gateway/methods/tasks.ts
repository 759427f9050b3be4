import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { elementsOf, isObject, memberOf, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import type { Item } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { isToolErrorResult } from '../../../protocol/message.ts'
import { replaceTaskId, translateTaskReferences } from '../../../protocol/task-ids.ts'
import { inPresentation, type View } from '../../settings/index.ts'
import { providerTaskKey, providerRunOfTask, unknownTaskError } from '../running-tasks.ts'
import { serverFingerprint, type TaskTarget } from '../task-handles.ts'
import type { GatewayParts, MethodHandler } from './method.ts'

/** Max pages of a server's tasks that are read for the list of a merged route. */
const maxPages = 20

/**
 * Handles the methods that name a task, such as `tasks/get` and `tasks/cancel`. Only the principal that created a task
 * may use it, on the same route, while the tool is shown there.
 */
export const runTaskMethod: MethodHandler = async (parts, exchange) => {
  const { view, client, params, paramsText } = exchange
  const target = parts.taskHandles.open(view, params.taskId)
  if (!target || !(await isShown(parts, exchange, target))) throw unknownTaskError()
  const { id, provider, tool } = target
  const handle = String(params.taskId)
  parts.taskHandles.remember(view, client, provider, id, handle)
  // Members in which a server might look for another task id are removed.
  const { task: _task, id: _id, ...others } = params
  const changes = { taskId: JSON.stringify(id), task: undefined, id: undefined }
  const own = new DerivedExchange(exchange, {
    view, params: { ...others, taskId: id }, paramsText: withMembers(paramsText, changes)
  })
  try {
    const result = await parts.forwarder.send(own, provider, tool)
    await recordAnswer(parts, exchange, target, result)
    return replaceTaskId(result, id, handle)
  } catch (error) {
    const isGone = exchange.method === 'tasks/get' && error instanceof RpcError && error.code === rpcCode.invalidParams
    if (isGone) await parts.runningTasks.forget(view, client, target)
    throw error
  }
}

/** Records the state of a task that an answer reports. */
async function recordAnswer (
  { runningTasks }: GatewayParts, { view, client, method, params }: Exchange<View>, target: TaskTarget, result: string
): Promise<void> {
  if (method !== 'tasks/result') await runningTasks.recordState(view, client, target, String(params.taskId), result)
  else await runningTasks.recordEnd(view, client, target, isToolErrorResult(result) ? 'failed' : 'completed')
}

/**
 * Returns a request with the provider's task ids in place of the client's. References to unknown tasks, and to tasks of
 * other providers, are removed.
 */
export function withProviderTaskIds (
  parts: Pick<GatewayParts, 'taskHandles' | 'surfaces' | 'providers'>, exchange: Exchange<View>, provider: string
): Exchange<View> {
  const { view, paramsText } = exchange
  const own = translateTaskReferences(paramsText, (handle) => {
    const target = parts.taskHandles.open(view, handle)
    return target?.provider === provider && isServerUnchanged(parts, exchange, target) ? target.id : undefined
  })
  return new DerivedExchange(exchange, {
    view, params: JSON.parse(own) as Record<string, unknown>, paramsText: own
  })
}

/**
 * Whether the view still includes a task's server, and its name has not passed to another server (`serverFingerprint`).
 * If the server's tasks end with its process, the process must be the same, too.
 */
function isServerUnchanged (
  { surfaces, providers }: Pick<GatewayParts, 'surfaces' | 'providers'>, exchange: Exchange<View>,
  { provider, server, id, run }: TaskTarget
): boolean {
  const section = surfaces.section(exchange.view, exchange.client, provider)
  return section !== undefined && serverFingerprint(provider, section.server.config) === server &&
    providerRunOfTask(providers.get(provider), exchange, id) === run
}

/**
 * Whether a task's server is unchanged, and the view still shows the task's tool.
 * @throws RpcError -32001 if the provider's lists are unknown and cannot be read now
 */
async function isShown (parts: GatewayParts, exchange: Exchange<View>, target: TaskTarget): Promise<boolean> {
  const { resolver, surfaces } = parts
  const { view, client } = exchange
  const { provider, tool } = target
  if (!isServerUnchanged(parts, exchange, target)) return false
  await resolver.waitForLists(provider, client)
  // The tools of `$smart` call tools of the merged view.
  const shown = view.presentation === 'search' ? inPresentation(view, 'merged') : view
  return resolver.exposedName(shown, surfaces.of(shown, client), 'tools', provider, tool) !== undefined &&
    // While waiting, the server may have been restarted.
    isServerUnchanged(parts, exchange, target)
}

/** Whether a tool can only run as a task (`execution.taskSupport`, MCP 2025-11-25). */
export const needsTask = memoized(({ text }: Item) =>
  text.includes('"taskSupport"') && parseSmallMember(memberOf(text, 'execution') ?? '{}', 'taskSupport') === 'required')

/**
 * If the result of a call creates a task, records the task, and replaces its id by a handle for the client.
 * @param tool the provider's name of the called tool
 */
export function recordCreatedTask (
  parts: GatewayParts, exchange: Exchange<View>, provider: string, tool: string, result: string
): string | Promise<string> {
  const task = createdTaskIn(result, exchange)
  const id = task === undefined ? undefined : parseSmallMember(task, 'taskId')
  if (task === undefined || typeof id !== 'string') return result
  const { taskHandles, surfaces, providers, runningTasks } = parts
  const { view, client } = exchange
  const section = surfaces.section(view, client, provider)
  const server = serverFingerprint(provider, section?.server.config)
  // If the run is undefined, the task has already ended with its server's process. The run '' then makes the handle
  // invalid, since no process of the server has this run.
  const run = providerRunOfTask(providers.get(provider), exchange, id) ?? ''
  const target = { provider, server, tool, id, run }
  const handle = taskHandles.seal(view, client, target)
  return runningTasks.recordState(view, client, target, handle, task).then(() => replaceTaskId(result, id, handle))
}

/** The JSON text of the task that a result creates, in the client's `taskForm`; undefined if it creates none. */
function createdTaskIn (result: string, { taskForm }: Pick<Exchange, 'taskForm'>): string | undefined {
  if (!result.includes('askId')) return undefined
  if (taskForm === 'extension') return memberOf(result, 'resultType') === '"task"' ? result : undefined
  const task = memberOf(result, 'task')
  return task?.startsWith('{') === true ? task : undefined
}

/**
 * Handles `tasks/list`: lists the tasks that the principal created or used on this route. The list of a server is
 * filtered, since it may contain the tasks of all clients.
 */
export const listTasks: MethodHandler = async (parts, exchange) => {
  const { surfaces } = parts
  const { view, client } = exchange
  const { capabilities } = surfaces.of(view, client)
  const listing = [...capabilities].flatMap(([name, { tasks }]) =>
    isObject(tasks) && tasks.list !== undefined ? [name] : [])
  const [only] = listing
  if (only === undefined) throw new RpcError(rpcCode.methodNotFound, 'Method not found: tasks/list')
  const handles = await parts.runningTasks.handlesOf(view, client)
  if (view.scope.kind === 'server') {
    const result = await parts.forwarder.send(exchange, only, undefined)
    return withMembers(result, { tasks: `[${(await ownTasks(parts, exchange, only, result, handles)).join()}]` })
  }
  const lists = await Promise.all(listing.map(async (name) => await allTasks(parts, exchange, name, handles)))
  return `{"tasks":[${lists.flat().join()}]}`
}

/** Reads the pages of a server's tasks, at most `maxPages`. If a page cannot be read, returns the tasks before it. */
async function allTasks (
  parts: GatewayParts, exchange: Exchange<View>, provider: string, handles: ReadonlyMap<string, string>
): Promise<string[]> {
  const found: string[] = []
  let cursor: unknown
  for (let page = 0; page < maxPages; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const paged = new DerivedExchange(exchange, { view: exchange.view, params, paramsText: JSON.stringify(params) })
    try {
      const result = await parts.forwarder.send(paged, provider, undefined)
      found.push(...await ownTasks(parts, exchange, provider, result, handles))
      cursor = parseSmallMember(result, 'nextCursor')
    } catch (error) {
      if (!(error instanceof RpcError) || exchange.cancelled !== undefined) throw error
      return found
    }
    if (typeof cursor !== 'string') return found
  }
  return found
}

/**
 * Selects the tasks that the client may use, and replaces their ids by handles.
 * @param list a result of `tasks/list` from the provider
 * @param handles the stored handles, as returned by `RunningTasks.handlesOf`
 */
async function ownTasks (
  parts: GatewayParts, exchange: Exchange<View>, provider: string, list: string, handles: ReadonlyMap<string, string>
): Promise<string[]> {
  const { view, client } = exchange
  const own: string[] = []
  for (const text of elementsOf(memberOf(list, 'tasks') ?? '[]')) {
    const id = text.startsWith('{') ? parseSmallMember(text, 'taskId') : undefined
    const handle =
      parts.taskHandles.find(view, client, provider, id) ?? handles.get(providerTaskKey(provider, String(id)))
    const target = handle === undefined ? undefined : parts.taskHandles.open(view, handle)
    if (target && await isShown(parts, exchange, target)) own.push(replaceTaskId(text, target.id, String(handle)))
  }
  return own
}

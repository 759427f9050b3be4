import { code, RpcError } from '../../../protocol/errors.ts'
import { elementsOf, memberOf, smallMemberOf, withMembers } from '../../../protocol/json.ts'
import type { Method } from './method.ts'

/**
 * `tasks/get`, `tasks/result`, `tasks/cancel` and other task methods (MCP 2025-11-25), for the owner of the task only.
 */
export const runTaskMethod: Method = async ({ surfaces, forwarder, tasks }, exchange) => {
  const { view, client, params: { taskId } } = exchange
  const provider = tasks.providerOf(taskId, view.principal.key, surfaces.of(view, client).providers)
  if (provider === undefined) throw new RpcError(code.invalidParams, 'Unknown task')
  return await forwarder.send(exchange, provider, undefined)
}

/** `tasks/list`: only the principal's own tasks, since an upstream lists all tasks of a shared connection. */
export const listTasks: Method = async ({ forwarder, tasks }, exchange) => {
  const { scope, principal } = exchange.view
  if (scope.kind !== 'server') throw new RpcError(code.methodNotFound, 'Method not found: tasks/list')
  const result = await forwarder.send(exchange, scope.name, undefined)
  const own = elementsOf(memberOf(result, 'tasks') ?? '[]').filter((text) =>
    text.startsWith('{') && tasks.owns(smallMemberOf(text, 'taskId'), principal.key, scope.name))
  return withMembers(result, { tasks: `[${own.join(',')}]` })
}

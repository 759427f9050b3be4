import { hasTasksExtension, tasksExtension } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { mcpNameMemberOf } from '../../../protocol/modern/envelope.ts'
import { missingCapabilitiesError } from './errors.ts'
import type { ModernRequest } from './request.ts'

// The client side of the extension `io.modelcontextprotocol/tasks`.

/** @throws RpcError -32021 if the request does not declare the extension */
export function requireTasksExtension ({ capabilities }: Pick<ModernRequest, 'capabilities'>): void {
  if (hasTasksExtension(capabilities)) return
  throw missingCapabilitiesError('Missing required client capability', { extensions: { [tasksExtension]: {} } })
}

/** Checks a request about a task. @throws RpcError -32601 for methods that the extension does not have; -32021 */
export function checkTaskRequest (request: ModernRequest): void {
  if (mcpNameMemberOf(request.method) !== 'taskId') {
    throw new RpcError(rpcCode.methodNotFound, `Method not found: ${request.method}`)
  }
  requireTasksExtension(request)
}

import { hasTasksExtension, tasksExtension } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { mcpNameMemberOf } from '../../../protocol/modern/envelope.ts'
import { missingCapabilitiesError } from './errors.ts'
import type { ModernRequest } from './request.ts'

// Checks of requests that use the extension `io.modelcontextprotocol/tasks`.

/** Checks that a request declares the extension for tasks. @throws RpcError -32021 */
export function requireTasksExtension ({ capabilities }: Pick<ModernRequest, 'capabilities'>): void {
  if (hasTasksExtension(capabilities)) return
  throw missingCapabilitiesError('Missing required client capability', { extensions: { [tasksExtension]: {} } })
}

/**
 * Checks the method and the capabilities of a `tasks/` request.
 * @throws RpcError -32601 for a method that the extension does not have; -32021 if the extension is not declared
 */
export function checkTaskRequest (request: ModernRequest): void {
  if (mcpNameMemberOf(request.method) !== 'taskId') {
    throw new RpcError(rpcCode.methodNotFound, `Method not found: ${request.method}`)
  }
  requireTasksExtension(request)
}

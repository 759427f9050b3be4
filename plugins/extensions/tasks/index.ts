import type { Static } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import type { TaskRecord } from '../../../db/ports/tasks.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { RunningTask } from '../../../schemas/tasks.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { isOfFormerAccount, type Principal, type View } from '../../settings/index.ts'
import { routePathOf } from '../policies/facts.ts'

declare module 'fastify' {
  interface FastifyInstance { tasks: TasksApi }
}

type ShownTask = Static<typeof RunningTask>

interface TasksApi {
  /** Lists the running tasks, newest first: those of the principal's user, or all for an admin. @throws StorageError */
  list: (principal: Principal) => Promise<ShownTask[]>
  /**
   * Asks the server of a task to cancel it.
   * @returns the task after the request; the server may not have cancelled it yet
   * @throws NoSuch; Duplicate if the task has ended, or runs in a process of another replica; UpstreamSlow or
   *   UpstreamFailed for an error of the server
   */
  cancel: (principal: Principal, id: string) => Promise<ShownTask>
}

/** `app.tasks`: the running tasks that clients began. Users see their own tasks, admins all of them. */
export default fp(async (app) => {
  const { tasks } = app.gateway
  const canSee = ({ isAdmin, username }: Principal, task: TaskRecord): boolean => {
    if (isAdmin) return true
    return username !== undefined && task.username === username &&
      !isOfFormerAccount(app.settings.current, username, task.updatedAt)
  }
  const failureOf = (error: unknown, { server }: TaskRecord): unknown => {
    if (!(error instanceof RpcError)) return error
    const message = app.gateway.redact(server, error.message)
    if (error.code === rpcCode.invalidParams) {
      return new errors.Duplicate(`It has ended, or belongs to a process of another replica (${message})`)
    }
    return error.reason === 'timeout' ? new errors.UpstreamSlow(message) : new errors.UpstreamFailed(message)
  }
  app.decorate('tasks', {
    list: async (principal) => {
      const listed = await tasks.list(principal.isAdmin ? undefined : principal.username ?? '')
      return listed.filter((task) => canSee(principal, task)).map(show)
    },
    cancel: async (principal, id) => {
      const task = await tasks.find(id)
      if (task === undefined || !canSee(principal, task)) throw noSuchError('running task', id)
      try {
        const cancelled = await tasks.cancel(task)
        const { server, tool } = task
        app.log.info({ server, tool, by: principal.username }, 'a task was cancelled through the API')
        return show(cancelled)
      } catch (error) {
        throw failureOf(error, task)
      }
    }
  } satisfies TasksApi)
}, { name: 'tasks', dependencies: ['gateway', 'settings'] })

const show = (
  { id, server, tool, username, keyName, route, state, createdAt, updatedAt, ttl }: TaskRecord
): ShownTask => ({
  id,
  server,
  tool,
  ...username !== undefined && { username },
  ...keyName !== undefined && { keyName },
  route: routePathOf(route as View),
  state,
  startedAt: new Date(createdAt).toISOString(),
  updatedAt: new Date(updatedAt).toISOString(),
  ...ttl !== undefined && { ttl }
})

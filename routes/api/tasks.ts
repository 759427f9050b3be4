import { toAuthor } from '../../plugins/settings/index.ts'
import { RunningTask, TaskParams } from '../../schemas/tasks.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

/** Routes that list and cancel running tasks of servers. Users see their own tasks, admins see all. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = createApiRouter(app, 'Tasks')
  api.list('/tasks', {
    summary: 'List running tasks, newest first, in the state last reported by their servers: your own, or all for ' +
      'admins',
    item: RunningTask,
    key: 'id'
  }, async ({ principal }) => await app.tasks.list(principal))
  api.post('/tasks/:id/cancel', {
    summary: 'Cancel a task',
    description: 'Asks the server to cancel the task. `data` is the task after the request; its `state` may still ' +
      'change. 409: the task has ended, or runs in a process of another replica.',
    params: TaskParams,
    data: RunningTask
  }, async ({ principal, params }) => {
    const task = await app.tasks.cancel(principal, params.id)
    const { id, server, tool, username, state } = task
    app.audit.addChange(toAuthor(principal), {
      entity: 'task', name: `${server} ${tool}`, after: { id, username, server, tool, state }
    })
    return { data: task, message: `The server was asked to cancel the task, which is ${task.state} now` }
  })
}
export default routes

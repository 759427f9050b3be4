import { toAuthor } from '../../plugins/settings/index.ts'
import { RunningTask, TaskId } from '../../schemas/tasks.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { endpointsOf } from './endpoint.ts'

/** Running tasks of servers. Users see their own, admins see all. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = endpointsOf(app, 'Tasks')
  api.list('/tasks', {
    summary: 'List the tasks that run, newest first, as their servers told last: the own ones, or all for admins',
    item: RunningTask,
    key: 'id'
  }, async ({ principal }) => await app.tasks.list(principal))
  api.post('/tasks/:id/cancel', {
    summary: 'Cancel a task',
    description: 'Asks its server to cancel it. `data` is the task after that, whose `state` may change later. 409: ' +
      'it has ended, or runs in a process of another replica.',
    params: TaskId,
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

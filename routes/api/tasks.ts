import { Type } from '@sinclair/typebox'
import { RunningTask, TaskId } from '../../schemas/tasks.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { endpointsOf } from './endpoint.ts'

/** Tasks that run at servers. Users see their own, admins all. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = endpointsOf(app, 'Tasks')
  api.get('/tasks', {
    summary: 'List the tasks that run',
    description: 'Newest first, those that clients began through this gateway and that have not ended, as their ' +
      'servers told of them last. Users see their own, admins all.',
    data: Type.Array(RunningTask)
  }, async ({ principal }) => ({ data: await app.tasks.list(principal) }))
  api.post('/tasks/:id/cancel', {
    summary: 'Cancel a task',
    description: 'Asks its server to cancel it. `data` is the task after that, whose `state` may change later. 409: ' +
      'it has ended, or runs in a process of another replica.',
    params: TaskId,
    data: RunningTask
  }, async ({ principal, params }) => {
    const task = await app.tasks.cancel(principal, params.id)
    return { data: task, message: `The server was asked to cancel the task, which is ${task.state} now` }
  })
}
export default routes

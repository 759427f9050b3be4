import { CleanupQuery, Deleted } from '../../../schemas/activities.ts'
import { Success } from '../../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { mustBeRecorded } from '../activities.ts'
import { authorOf } from '../principal.ts'

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.delete('/activities/cleanup', {
    schema: {
      tags: ['Activities'],
      summary: 'Remove old recorded calls',
      description: 'Those that are older than so many days. What is older than ACTIVITY_RETENTION goes by itself.',
      querystring: CleanupQuery,
      response: { 200: Success(Deleted) }
    },
    config: { effect: 'change' },
    onRequest: mustBeRecorded
  }, async (request) => {
    const { daysOld = 30 } = request.query
    const deletedCount = await app.activities.cleanup(daysOld)
    app.audit.note(authorOf(request), { entity: 'activities', name: 'activities', before: { daysOld, deletedCount } })
    return { success: true as const, data: { deletedCount }, message: `${deletedCount} recorded calls were removed` }
  })
}
export default routes

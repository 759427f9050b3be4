import type { onRequestHookHandler } from 'fastify'
import {
  ActivityAvailable,
  ActivityCriteria,
  ActivityFilters,
  ActivityId,
  ActivityList,
  ActivityPageQuery,
  ActivityRecord,
  ActivityStats
} from '../../schemas/activities.ts'
import { Success } from '../../schemas/api.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'

const tags = ['Activities']

/** Answers 404 where calls are not recorded, before anything is validated (DECISIONS §1). */
export const mustBeRecorded: onRequestHookHandler = (request, _reply, done) => {
  request.server.activities.mustBeAvailable()
  done()
}

/** The record of calls: users see their own, admins all. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/activities/available', {
    schema: { tags, summary: 'Whether calls are recorded', response: { 200: Success(ActivityAvailable) } },
    config: { effect: 'read' }
  }, async () => ({ success: true as const, data: { available: app.activities.available } }))

  app.get(
    '/activities',
    {
      schema: {
        tags,
        summary: 'Recorded calls',
        description:
          'Newest first: calls of tools, prompts and resources over MCP and plain HTTP; users see their own, admins all. A call appears ' +
          'after a second. `total` is exact to 10,000. A page holds 8 MiB of inputs and outputs: further down on it, calls come ' +
          'without theirs, which the call by its id has. 404 without a database.',
        querystring: ActivityPageQuery,
        response: { 200: ActivityList }
      },
      config: { effect: 'read' },
      onRequest: mustBeRecorded
    },
    async (request) => {
      const { page = 1, limit = 20, ...query } = request.query
      return { success: true as const, ...await app.activities.list(principalOf(request), query, page, limit) }
    }
  )

  app.get('/activities/stats', {
    schema: { tags, summary: 'Recorded calls in numbers', querystring: ActivityCriteria, response: { 200: Success(ActivityStats) } },
    config: { effect: 'read' },
    onRequest: mustBeRecorded
  }, async (request) => ({ success: true as const, data: await app.activities.stats(principalOf(request), request.query) }))

  app.get('/activities/filters', {
    schema: { tags, summary: 'The values to filter by', response: { 200: Success(ActivityFilters) } },
    config: { effect: 'read' },
    onRequest: mustBeRecorded
  }, async (request) => ({ success: true as const, data: await app.activities.filters(principalOf(request)) }))

  app.get('/activities/:id', {
    schema: { tags, summary: 'One recorded call', params: ActivityId, response: { 200: Success(ActivityRecord) } },
    config: { effect: 'read' },
    onRequest: mustBeRecorded
  }, async (request) => ({ success: true as const, data: await app.activities.find(principalOf(request), request.params.id) }))
}
export default routes

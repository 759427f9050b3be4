import {
  ActivityAvailability, ActivityCriteria, ActivityFilterChoices, ActivityList, ActivityPageQuery, ActivityParams,
  ActivityRecord, ActivityStats
} from '../../schemas/activities.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

/** Routes that return recorded calls and their statistics. Users see their own calls; admins see all calls. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { activities } = app
  const api = createApiRouter(app, 'Activities')
  const before = (): void => { activities.assertAvailable() }

  api.get('/activities/available', { summary: 'Check whether calls are recorded', data: ActivityAvailability }, () =>
    ({ data: { available: activities.isAvailable } }))

  api.get('/activities', {
    summary: 'List recorded calls',
    description:
      'Newest first: calls of tools, prompts and resources over MCP and plain HTTP. Users see their own calls, ' +
      'admins all. A call appears after a second. `total` is exact up to 10,000. A page contains at most 8 MiB of ' +
      'inputs and outputs; the remaining calls on it come without them, and `GET /activities/{id}` returns them. 404 ' +
      'without a database.',
    query: ActivityPageQuery,
    response: { 200: ActivityList },
    before
  }, async (
    { principal, query: { page = 1, limit = 20, ...query } }
  ) => ({ ...await activities.list(principal, query, page, limit) }))

  api.get('/activities/stats', {
    summary: 'Get statistics of recorded calls',
    query: ActivityCriteria,
    data: ActivityStats,
    before
  }, async ({ principal, query }) => ({ data: await activities.stats(principal, query) }))

  api.get('/activities/filters', {
    summary: 'List the values that recorded calls can be filtered by', data: ActivityFilterChoices, before
  }, async ({ principal }) => ({ data: await activities.filterValues(principal) }))

  api.get('/activities/:id', {
    summary: 'Get a recorded call', params: ActivityParams, data: ActivityRecord, before
  }, async (call) => ({ data: await activities.find(call.principal, call.params.id) }))
}
export default routes

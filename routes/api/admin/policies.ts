import { NewPolicy, Policy, PolicyTest, PolicyTestResult } from '../../../schemas/policies.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { endpointsOf } from '../endpoint.ts'
import { addOrderedRoutes } from '../ordered.ts'

/** Policies: rules about requests. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  addOrderedRoutes(app, {
    tag: 'Policies',
    path: '/policies',
    noun: 'policy',
    nouns: 'policies',
    itemSchema: Policy,
    newItemSchema: NewPolicy,
    entries: app.policies.entries
  })
  endpointsOf(app, 'Policies').post('/policies/test', {
    summary: 'Which policy decides about a call, and why',
    description: 'A call as it would be made, or a recorded one. Nothing is called.',
    body: PolicyTest,
    data: PolicyTestResult,
    effect: 'read'
  }, async ({ principal, body }) => ({ data: await app.policies.test(principal, body) }))
}
export default routes

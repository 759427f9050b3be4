import { checkScopes } from '../../../plugins/identity/index.ts'
import { NewPolicy, Policy, PolicyTest, PolicyTestResult } from '../../../schemas/policies.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { createApiRouter } from '../endpoint.ts'
import { addOrderedEntityRoutes } from '../ordered.ts'

/** Routes that read, change and test the policies, which decide whether calls are allowed, denied or need approval. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  addOrderedEntityRoutes(app, {
    tag: 'Policies',
    path: '/policies',
    noun: 'policy',
    nouns: 'policies',
    itemSchema: Policy,
    newItemSchema: NewPolicy,
    entries: app.policies.entries
  })
  createApiRouter(app, 'Policies').post('/policies/test', {
    summary: 'Test which policy decides a call, and why',
    description: 'The call is described in the body, or is a recorded one. It is not executed.',
    body: PolicyTest,
    data: PolicyTestResult,
    effect: 'read',
    before: ({ principal }) => { checkScopes(principal) }
  }, async ({ principal, body }) => ({ data: await app.policies.test(principal, body) }))
}
export default routes

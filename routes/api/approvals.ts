import { Type } from '@sinclair/typebox'
import { ApprovalRecord, ApprovalParams, ApprovalQuery } from '../../schemas/approvals.ts'
import type { ShownApproval } from '../../plugins/extensions/index.ts'
import { type Principal, toAuthor } from '../../plugins/settings/index.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'

/** Routes that list calls which need approval, and approve or deny them. `approvals` checks the caller's rights. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { approvals } = app.policies
  const api = createApiRouter(app, 'Policies')
  api.get('/approvals', {
    summary: 'List pending approvals, and those of the last day',
    description: 'Newest first. Admins see all calls; other users see those for which a policy names them as ' +
      'approvers.',
    query: ApprovalQuery,
    data: Type.Array(ApprovalRecord)
  }, async ({ principal, query }) => ({ data: await approvals.list(principal, query.state, query.limit) }))

  const decide = async (
    principal: Principal, id: string, state: 'approved' | 'denied'
  ): Promise<ShownApproval> => {
    const { decided, former } = await approvals.decide(principal, id, state)
    const { username, server, tool, policy } = decided
    const call = { id, username, server, tool, policy: policy.name }
    app.audit.addChange(toAuthor(principal), {
      entity: 'approval', name: `${server} ${tool}`, before: { ...call, state: former }, after: { ...call, state }
    })
    return decided
  }
  const decision = 'The last decision applies, until the call is made or the approval expires. Users cannot decide ' +
    'about their own calls.'
  api.post('/approvals/:id/approve', {
    summary: 'Allow a call once',
    description: `The caller must repeat the call before the approval expires. ${decision}`,
    params: ApprovalParams,
    data: ApprovalRecord
  }, async ({ principal, params }) =>
    ({ data: await decide(principal, params.id, 'approved'), message: 'The call was approved' }))
  api.post('/approvals/:id/deny', {
    summary: 'Deny a call', description: decision, params: ApprovalParams, data: ApprovalRecord
  }, async ({ principal, params }) =>
    ({ data: await decide(principal, params.id, 'denied'), message: 'The call was denied' }))
}
export default routes

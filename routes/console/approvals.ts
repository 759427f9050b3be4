import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { type ShownApproval, escapeInvisible } from '../../plugins/extensions/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { createPageRouter } from './page.ts'

const minute = 60_000

/**
 * Returns a value that changes when there may be other approvals for a principal to decide on: immediately after a call
 * or a decision on this replica; and once a minute, since this replica is not told about decisions on other replicas
 * or about expired approvals. Returns false if the principal cannot approve anything.
 */
export const approvalsFingerprint = ({ policies: { approvals } }: FastifyInstance, principal: Principal): unknown =>
  approvals.canApprove(principal) && [approvals.changeCount, Math.floor(Date.now() / minute)]

/** Returns a list with the button that reverses a decision; empty if the call was made or the approval has expired. */
function reversalsOf ({ id, state, isUsed, expiresAt }: ShownApproval, base: string): readonly object[] {
  if (isUsed === true || Date.parse(expiresAt) <= Date.now()) return []
  const href = `${base}/approvals/${encodeURIComponent(id)}`
  if (state === 'approved') return [{ label: 'Deny instead', href: `${href}/deny`, method: 'post', isDanger: true }]
  return state === 'denied' ? [{ label: 'Approve instead', href: `${href}/approve`, method: 'post' }] : []
}

/** The page on which admins, and approvers named in policies, decide on calls that wait for approval. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit: { base, api }, policies: { approvals } } = app
  const { page, form, submit } = createPageRouter(app)

  page('approvals', {
    title: 'Approvals',
    isInNav: (principal) => approvals.canApprove(principal),
    watch: (principal) => approvalsFingerprint(app, principal)
  }, async ({ principal, request }) => {
    const all = (await api.ask(request, 'GET', '/approvals?limit=1000')).data as readonly ShownApproval[]
    const waiting = await approvals.idsWaitingFor(principal)
    return {
      live: {},
      pending: all.filter(({ state }) => state === 'pending').map((approval) => ({
        ...approval,
        username: escapeInvisible(approval.username),
        server: escapeInvisible(approval.server),
        tool: escapeInvisible(approval.tool),
        policy: escapeInvisible(approval.policy.name),
        isOwn: !waiting.has(approval.id),
        lines: Object.entries(approval.arguments as object)
          .map(([name, value]) =>
            ({ name: escapeInvisible(name), value: escapeInvisible(JSON.stringify(value, undefined, 2)) })),
        href: `${base}/approvals/${encodeURIComponent(approval.id)}`
      })),
      rows: all.filter(({ state }) => state !== 'pending').slice(0, 50).map((approval) => ({
        cells: [
          { text: escapeInvisible(approval.tool), under: escapeInvisible(approval.server), isMono: true },
          approval.username === '' ? 'someone without credentials' : escapeInvisible(approval.username),
          {
            text: approval.isUsed === true ? 'approved, call made' : approval.state,
            under: approval.decidedBy === undefined ? undefined : `by ${approval.decidedBy}`
          },
          { time: approval.createdAt },
          { actions: approval.username === principal.username ? [] : reversalsOf(approval, base) }
        ]
      }))
    }
  })
  for (const decision of ['approve', 'deny'] as const) {
    form(`/approvals/:id/${decision}`, { effect: 'change' }, async (visit) =>
      await submit(visit, '/approvals', 'POST', `/approvals/:id/${decision}`))
  }
}
export default routes

import type { FastifyPluginAsync } from 'fastify'
import type { ShownApproval } from '../../plugins/extensions/index.ts'
import { noticeOf, pagesOf } from './page.ts'

const states = { pending: 'waits', approved: 'approved', denied: 'denied', expired: 'expired' } as const

/** Page: the calls that wait for a person to allow them, for admins and those whom a rule names as approvers. */
const routes: FastifyPluginAsync = async (app) => {
  const { base, api, nav } = app.kit
  const { page, form } = pagesOf(app)
  nav.push({ page: 'approvals', title: 'Approvals', isForAdmins: true })

  page('approvals', { title: 'Approvals' }, async ({ request }) => {
    const all = (await api.ask(request, 'GET', '/approvals?limit=1000')).data as readonly ShownApproval[]
    return {
      pending: all.filter(({ state }) => state === 'pending').map((approval) => ({
        ...approval,
        lines: Object.entries(approval.arguments as object)
          .map(([name, value]) => ({ name, value: JSON.stringify(value) })),
        href: `${base}/approvals/${encodeURIComponent(approval.id)}`
      })),
      rows: all.filter(({ state }) => state !== 'pending').slice(0, 50).map((approval) => ({
        cells: [
          { text: approval.tool, under: approval.server, isMono: true },
          approval.username === '' ? 'somebody without credentials' : approval.username,
          {
            text: states[approval.state],
            under: approval.decidedBy === undefined ? undefined : `by ${approval.decidedBy}`
          },
          { time: approval.createdAt }
        ]
      }))
    }
  })
  for (const decision of ['approve', 'deny'] as const) {
    form(`/approvals/:id/${decision}`, { effect: 'change' }, async ({ request, params: { id = '' } }) => ({
      to: '/approvals',
      notice: noticeOf(await api.ask(request, 'POST', `/approvals/${encodeURIComponent(id)}/${decision}`))
    }))
  }
}
export default routes

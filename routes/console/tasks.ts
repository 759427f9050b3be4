import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { createPageRouter } from './page.ts'
import { paginate, shownNameOf } from './lists.ts'

type Task = Awaited<ReturnType<FastifyInstance['tasks']['list']>>[number]
type Subscription = Awaited<ReturnType<FastifyInstance['eventWebhooks']['list']>>[number]
type Failed = Awaited<ReturnType<FastifyInstance['eventWebhooks']['listFailed']>>[number]

/** The page that shows and cancels running tasks, shows and removes clients' webhooks, and shows undelivered events. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit: { base }, tasks, eventWebhooks } = app
  const { page, form, submit } = createPageRouter(app)

  page('tasks-and-webhooks', {
    title: 'Tasks and webhooks',
    isInNav: true,
    watch: async (principal) => await Promise.all([
      tasks.list(principal), eventWebhooks.list(principal), eventWebhooks.listFailed(principal)
    ])
  }, async ({ principal, query: { page: number = '1' } }) => ({
    live: {},
    parts: [
      tasksPart(base, await tasks.list(principal), number),
      webhooksPart(base, await eventWebhooks.list(principal)),
      failedPart(await eventWebhooks.listFailed(principal))
    ]
  }))
  form('/tasks-and-webhooks/:id/cancel', { effect: 'change' }, async (visit) =>
    await submit(visit, '/tasks-and-webhooks', 'POST', '/tasks/:id/cancel'))
  form('/tasks-and-webhooks/webhooks/:id/remove', { effect: 'change' }, async (visit) =>
    await submit(visit, '/tasks-and-webhooks', 'DELETE', '/events/subscriptions/:id'))
}
export default routes

const actionsColumn = { title: 'Actions', isHidden: true }

/** The max number of webhooks and of undelivered events that the page shows. The API returns all. */
const maxShown = 100

function tasksPart (base: string, tasks: readonly Task[], page: string): object {
  const { items, pages } = paginate(tasks, `${base}/tasks-and-webhooks`, { page })
  return {
    id: 'tasks',
    heading: 'Running tasks',
    empty: 'No tasks are running.',
    caption: 'Tasks, newest first',
    unit: pages.total === 1 ? 'task' : 'tasks',
    pages,
    columns: [
      { title: 'Tool' }, { title: 'Caller' }, { title: 'State' }, { title: 'Started' }, { title: 'Last update' },
      { title: 'Kept for' }, actionsColumn
    ],
    rows: items.map(({ id, tool, server, username, keyName, route, state, startedAt, updatedAt, ttl }) => ({
      cells: [
        { text: shownNameOf(tool), under: `${server} · ${route} · ${shortIdOf(id)}`, isMono: true },
        { text: username ?? keyName ?? 'anonymous', under: username === undefined ? undefined : keyName },
        states.get(state) ?? shownNameOf(state),
        { time: startedAt },
        { time: updatedAt },
        ttl === undefined ? 'no limit' : durationOf(ttl),
        {
          actions: [
            {
              label: 'Cancel',
              href: `${base}/tasks-and-webhooks/${encodeURIComponent(id)}/cancel`,
              method: 'post',
              isDanger: true
            }
          ]
        }
      ]
    }))
  }
}

/** Returns the last 8 characters of an id, which distinguish the tasks of one tool. */
const shortIdOf = (id: string): string => shownNameOf(id).slice(-8)

/** Formats a duration in the largest unit that fits, such as `1.5 h`. @param ms the duration in ms */
function durationOf (ms: number): string {
  const [size, unit] = units.find(([size]) => ms >= size) ?? [1_000, 's']
  return `${(ms / size).toLocaleString('en', { maximumFractionDigits: 1 })} ${unit}`
}
const units = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1_000, 's']] as const

/** The texts for states of tasks. Other states are shown under their own names. */
const states: ReadonlyMap<string, string> = new Map([['input_required', 'waiting for an answer']])

const webhooksPart = (base: string, subscriptions: readonly Subscription[]): object => ({
  id: 'webhooks',
  heading: 'Webhooks for events',
  empty: 'No client has registered a webhook.',
  caption: 'Webhooks, newest first',
  columns: [{ title: 'Event' }, { title: 'Caller' }, { title: 'Sent to' }, { title: 'Expires' }, actionsColumn],
  rows: subscriptions.slice(0, maxShown).map(({ id, event, server, route, user, url, expiresAt }) => ({
    cells: [
      { text: shownNameOf(event), under: `${server} · ${route}`, isMono: true },
      user,
      { text: url, isMono: true },
      { time: expiresAt },
      {
        actions: [{
          label: 'Remove',
          href: `${base}/tasks-and-webhooks/webhooks/${encodeURIComponent(id)}/remove`,
          method: 'post',
          isDanger: true
        }]
      }
    ]
  }))
})

const failedPart = (failed: readonly Failed[]): object => ({
  id: 'failed',
  heading: 'Undelivered events',
  empty: 'None in the last seven days.',
  caption: 'Failed messages, newest first',
  columns: [{ title: 'Event' }, { title: 'Caller' }, { title: 'Sent to' }, { title: 'Reason' }, { title: 'When' }],
  rows: failed.slice(0, maxShown).map(({ event, server, user, url, reason, attempts, failedAt }) => ({
    cells: [
      { text: shownNameOf(event), under: server, isMono: true },
      user,
      { text: url, isMono: true },
      { text: reason, under: attempts === 1 ? 'one attempt' : `${attempts} attempts` },
      { time: failedAt }
    ]
  }))
})

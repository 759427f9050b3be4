import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { ApiError } from '../../plugins/management/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { createPageRouter } from './page.ts'
import { paginate, shownNameOf, urlWithQuery } from './lists.ts'

/** The ways to group usage. `nameless`: the label for usage whose name on this axis is empty. */
const axes = [
  { value: 'user', text: 'User', nameless: 'without a username' },
  { value: 'key', text: 'Key', nameless: 'without a key' },
  { value: 'server', text: 'Server', nameless: 'without a server' },
  { value: 'tool', text: 'Tool', nameless: 'prompts and resources' }
] as const
type Axis = typeof axes[number]

interface Counts { readonly calls: number, readonly errors: number, readonly resultTokens: number }

/** A row of the API's response, for one day. It has the member that the axis names; for `tool`, also `server`. */
type UsageRow = Counts & Readonly<Partial<Record<Axis['value'], string>>> & { readonly day: string }

/**
 * The query of the page. `by`: the axis; `of`: the only value on this axis to show, such as a username; `server`: the
 * server of the tool in `of`.
 */
interface PageQuery {
  readonly by: Axis['value'], readonly from: string, readonly to: string, readonly of?: string, readonly server?: string
}

const dayInMs = 86_400_000
/** The number of days that are shown if there is no `from`, as in the API. */
const shownDays = 30

/** The page with usage by user, key, server or tool, and by day. Users who are not admins see their own usage. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit: { base, api, renderer } } = app
  const path = `${base}/usage`

  const { page } = createPageRouter(app)
  page('usage', { title: 'Usage', isInNav: true }, async ({ principal, query, request, reply }) => {
    const { from = '', to = '', of, server, page = '1' } = query
    const axis = axes.find(({ value }) => value === query.by) ?? axes[principal.isAdmin ? 0 : 2]
    const period = { by: axis.value, from, to }
    const common = {
      title: 'Usage',
      isAdmin: principal.isAdmin,
      filters: [
        { name: 'by', label: 'By', value: axis.value, options: axes },
        { name: 'from', label: 'From', type: 'date', value: from.slice(0, 10) },
        { name: 'to', label: 'To', type: 'date', value: to.slice(0, 10) }
      ]
    }
    const answer = await api.ask(request, 'GET', urlWithQuery('/usage', period)).catch((error: unknown) => {
      if (error instanceof ApiError && error.statusCode === 400) return error
      throw error
    })
    if (answer instanceof ApiError) {
      renderer.send(reply, 'usage', { ...common, errors: answer.fields }, answer.statusCode)
      return {}
    }
    const pageQuery: PageQuery = { ...period, of, server }
    const rows = (answer.data as UsageRow[]).filter((row) => of === undefined ||
      (row[axis.value] === of && (axis.value !== 'tool' || row.server === server)))
    const found = of === undefined ? byName(rows, pageQuery, labelsOf(app, principal, axis), path) : byDay(rows)
    return {
      ...common,
      first: of === undefined ? axis.text : 'Day',
      ...of !== undefined && {
        of: shownNameOf(labelsOf(app, principal, axis)(of)), allHref: urlWithQuery(path, period)
      },
      total: sumOf(rows),
      isLatest: from === '' && to === '',
      ...chartOf(rows, from, to),
      ...paginate(found, path, { ...period, of: of ?? '', server: server ?? '', page })
    }
  })
}
export default routes

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

const sumOf = (rows: readonly Counts[]): Counts => rows.reduce((sum, { calls, errors, resultTokens }) => ({
  calls: sum.calls + calls, errors: sum.errors + errors, resultTokens: sum.resultTokens + resultTokens
}), { calls: 0, errors: 0, resultTokens: 0 })

function groupedBy<Row> (rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group) group.push(row)
    else groups.set(keyOf(row), [row])
  }
  return groups
}

/** Creates a function that returns the label for a value on an axis: a username, key id, server or tool. */
function labelsOf (
  { keys }: FastifyInstance, principal: Principal, { value, nameless }: Axis
): (name: string) => string {
  const names = new Map(value === 'key' ? keys.list(principal).map(({ id, name }) => [id, name]) : [])
  return (name) => name === '' ? nameless : names.get(name) ?? name
}

/** Returns the usage for each value on the axis, summed over all days. Values with the most calls come first. */
function byName (
  rows: readonly UsageRow[], { by, from, to }: PageQuery, labelOf: (name: string) => string, path: string
): object[] {
  const groups = groupedBy(rows, (row) => JSON.stringify([row[by], by === 'tool' ? row.server : '']))
  return [...groups.values()].map((group) => {
    const { [by]: name = '', server = '' } = group[0] ?? {}
    const under = by === 'tool' ? server : undefined
    return {
      text: shownNameOf(labelOf(name)),
      under,
      href: name === '' ? undefined : urlWithQuery(path, { by, from, to, of: name, server: under }),
      ...sumOf(group)
    }
  }).sort((one, other) => other.calls - one.calls)
}

/** Returns the usage of each day, newest first. @param rows ordered by day, as the API returns them */
const byDay = (rows: readonly UsageRow[]): object[] =>
  [...groupedBy(rows, ({ day }) => day)].reverse().map(([day, group]) => ({ text: day, ...sumOf(group) }))

/** Returns the data of the chart: the number of successful and failed calls of each day, in UTC. */
function chartOf (rows: readonly UsageRow[], from: string, to: string): object {
  const last = Date.parse(to === '' ? dayOf(Date.now()) : to.slice(0, 10))
  const first = from === '' ? last - (shownDays - 1) * dayInMs : Date.parse(from.slice(0, 10))
  const groups = groupedBy(rows, ({ day }) => day)
  const days = Array.from({ length: Math.max(1, (last - first) / dayInMs + 1) }, (_, at) => dayOf(first + at * dayInMs))
  return {
    days,
    bars: days.map((at) => {
      const { calls, errors } = sumOf(groups.get(at) ?? [])
      return { at, ok: calls - errors, failed: errors }
    })
  }
}

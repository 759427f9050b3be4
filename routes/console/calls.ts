import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { errors, noSuchError } from '../../plugins/base/errors/index.ts'
import { isAutoRefresh, type LoadLivePageData, parseIfJson } from '../../plugins/management/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { decisionWords, toSentence, createPageRouter } from './page.ts'
import { urlWithQuery } from './lists.ts'
import { serverPageUrl } from './server-states.ts'

type Call = Awaited<ReturnType<FastifyInstance['activities']['find']>>
type Query = Readonly<Record<string, string>>

/** The pages with the list of recorded calls, a single call, and two calls side by side. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit: { base }, activities } = app
  const { page } = createPageRouter(app)

  const callOf = async (principal: Principal, id: string): Promise<Call> =>
    await activities.find(principal, id).catch((error: unknown) => {
      throw error instanceof errors.NoSuch ? noSuchError('call', id) : error
    })

  // A call is recorded when it ends, under the time when it began. A long call is therefore not the newest one when it
  // is recorded, so the number of calls is watched too.
  const watch: LoadLivePageData = async (principal, query) => {
    if (!activities.isAvailable) return undefined
    const from = new Date((Math.floor(Date.now() / watchedTime) - 1) * watchedTime).toISOString()
    const { startDate = from, ...filter } = filterOf(query as Query)
    const since = startDate > from ? startDate : from
    const { data, pagination: { total } } = await activities.list(principal, { ...filter, startDate: since }, 1, 1)
    return [total, data[0]?.id]
  }
  page('calls', { title: 'Calls', isInNav: true, watch }, async ({ principal, query, request }) => {
    if (!activities.isAvailable) return { unavailable: toSentence(activities.disabledReason) }
    const { page: number = '1', ...criteria } = query
    const filter = filterOf(criteria)
    const pageNumber = Math.max(1, Math.trunc(Number(number)) || 1)
    const [{ data, pagination: { total, totalPages } }, values, bars] = await Promise.all([
      activities.list(principal, filter, pageNumber, pageSize),
      // An automatic refresh does not replace the filter form of the open page, so the choices are not needed.
      isAutoRefresh(request) ? undefined : activities.filterValues(principal),
      chartOf(app, principal, filter)
    ])
    const path = `${base}/calls`
    return {
      // Only the first page refreshes itself, since new calls are added at its start.
      ...pageNumber === 1 && criteria.endDate === undefined && { live: filter },
      filters: values ? fieldsOf(criteria, values, principal) : [],
      isFiltered: Object.keys(filter).length > 0,
      ...bars,
      items: data.map((call) => rowOf(base, call)),
      pages: {
        // A page beyond the last one has no calls.
        from: data.length === 0 ? 0 : (pageNumber - 1) * pageSize + 1,
        to: data.length === 0 ? 0 : (pageNumber - 1) * pageSize + data.length,
        total,
        ...pageNumber > 1 && {
          previous: urlWithQuery(path, { ...criteria, page: String(Math.min(pageNumber - 1, totalPages)) })
        },
        ...pageNumber < totalPages && { next: urlWithQuery(path, { ...criteria, page: String(pageNumber + 1) }) }
      }
    }
  })

  page('call', { title: 'Two calls', path: '/calls/compare' }, async ({ principal, request }) => {
    const { id = [] } = request.query as { id?: string | string[] }
    const chosen = [id].flat().slice(0, 2)
    if (chosen.length === 0) throw new errors.InvalidInput('Select two calls in the list, then compare them')
    const calls = await Promise.all(chosen.map(async (each) => await callOf(principal, each)))
    return { calls: calls.map((call) => callDetailsOf(app, principal, call)) }
  })

  page('call', { title: 'A call', path: '/calls/:id' }, async ({ principal, params: { id = '' } }) => {
    const call = await callOf(principal, id)
    return { title: call.tool, calls: [callDetailsOf(app, principal, call)] }
  })
}
export default routes

const hourInMs = 60 * 60_000
const pageSize = 50
/** The max number of bars in the chart. */
const maxBars = 24
/** The approximate age, in ms, up to which calls are watched. The end of a longer call does not refresh the page. */
const watchedTime = 10 * 60_000

/** Returns the query parameters that filter calls, without empty ones. */
const filterOf = ({ server, tool, status, username, startDate, endDate }: Query): Query =>
  Object.fromEntries(Object.entries({ server, tool, status, username, startDate, endDate })
    .filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''))

interface Values { readonly servers: string[], readonly tools: string[], readonly usernames: string[] }

function fieldsOf (criteria: Query, { servers, tools, usernames }: Values, { isAdmin }: Principal): object[] {
  const choice = (name: string, label: string, values: readonly string[]): object =>
    ({
      name,
      label,
      value: criteria[name],
      options: [{ value: '', text: 'all' }, ...values.map((value) => ({ value, text: value }))]
    })
  return [
    choice('server', 'Server', servers),
    choice('tool', 'Tool', tools),
    ...isAdmin ? [choice('username', 'Caller', usernames)] : [],
    choice('status', 'Outcome', ['success', 'error']),
    { name: 'startDate', label: 'Since', type: 'date', value: criteria.startDate }
  ]
}

/**
 * Returns the data of the chart, up to now. Each bar stands for one or more whole hours, since the database contains
 * hourly sums.
 */
async function chartOf ({ activities }: FastifyInstance, principal: Principal, filter: Query): Promise<object> {
  const until = Date.now()
  const start = Date.parse(filter.startDate ?? '')
  const begin = Number.isNaN(start) ? until - (maxBars - 1) * hourInMs : Math.min(start, until)
  const from = Math.floor(begin / hourInMs) * hourInMs
  const length = Math.max(1, Math.ceil((until - from) / maxBars / hourInMs)) * hourInMs
  const { endDate: _, ...criteria } = filter
  const count = Math.max(1, Math.ceil((until - from) / length))
  const found = await activities.series(principal, criteria, { from, length, count })
  const failed = found.reduce((sum, bar) => sum + bar.failed, 0)
  const total = found.reduce((sum, bar) => sum + bar.ok, failed)
  return {
    bars: found,
    barsLabel: `${total} calls, ${failed} of them failed`,
    barsFrom: new Date(from).toISOString(),
    barsTo: new Date(until).toISOString()
  }
}

/** Returns whether a call failed or was refused; undefined if it succeeded. */
const stateOf = ({ status, refused }: Call): 'failed' | 'refused' | undefined =>
  refused ? 'refused' : status === 'error' ? 'failed' : undefined

const ruleText = ({ id, name, mode, decision, observed = [] }: NonNullable<Call['policy']>): string => {
  const others = observed.filter((each) => each.id !== id).map((each) => `${each.name} ${decisionWords[each.decision]}`)
  return `${name} ${decisionWords[decision]}${mode === 'observe' ? ' (observe only)' : ''}` +
    (others.length === 0 ? '' : `; only observed: ${others.join(', ')}`)
}

function rowOf (base: string, call: Call): object {
  const { id, timestamp, server, tool, username, keyName, status, errorMessage, duration } = call
  return {
    id,
    href: `${base}/calls/${encodeURIComponent(id)}`,
    at: timestamp,
    server,
    tool,
    who: username ?? keyName ?? 'anonymous',
    state: stateOf(call),
    error: status === 'error' ? errorMessage : undefined,
    ms: duration
  }
}

function callDetailsOf ({ kit: { base }, servers }: FastifyInstance, principal: Principal, call: Call): object {
  const { timestamp, server, tool, username, keyName, group, sourceIp, duration, policy, guards = [] } = call
  const isVisible = servers.names(principal).includes(server)
  const href = serverPageUrl(base, server)
  const facts: Array<[string, unknown]> = [
    ['When', { time: timestamp }], ['Server', isVisible ? { text: server, href } : server],
    ['Caller', username ?? 'anonymous'], ['Key', keyName],
    ['Group', group], ['From', sourceIp], ['Duration', `${Math.round(duration)} ms`],
    ['Application', call.clientName ?? call.clientId],
    ['Rule', policy && ruleText(policy)],
    ...guards.map(({ name, action, found }): [string, string] => ['Guard', `${name}: ${found.join(', ')} (${action})`])
  ]
  return {
    tool,
    ...isVisible && { href: urlWithQuery(href, { q: tool }) },
    state: stateOf(call),
    error: call.errorMessage,
    facts: facts.filter(([, value]) => value !== undefined),
    input: recordedTextOf(call.input),
    output: recordedTextOf(call.output)
  }
}

/** Returns a recorded input or output as indented JSON. A text that is not JSON is returned unchanged. */
function recordedTextOf (value: unknown): string | undefined {
  if (typeof value !== 'string') return value === undefined ? undefined : JSON.stringify(value, undefined, 2)
  const read = parseIfJson(value)
  return read === undefined ? value : JSON.stringify(read, undefined, 2)
}

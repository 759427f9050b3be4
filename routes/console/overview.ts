import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { canManage, type Principal } from '../../plugins/settings/index.ts'
import { approvalsFingerprint } from './approvals.ts'
import { mcpEndpointUrl, toSentence, createPageRouter } from './page.ts'
import {
  connectionErrorText, repairActionOf, serverPageUrl, type ShownServer, stateOf, serverStates
} from './server-states.ts'

/** The start page, with the state of the gateway and the problems that need attention. */
const routes: FastifyPluginAsync = async (app) => {
  const { servers } = app
  createPageRouter(app).page('overview', {
    title: 'Overview',
    isInNav: true,
    watch: (principal) => [
      servers.list(principal).map((server) => [server.name, stateOf(server), server.error]),
      settingsProblemsOf(app, principal), changedDefinitionsOf(app, principal), approvalsFingerprint(app, principal),
      costOf(app, principal), anonymousAccessTexts(app)
    ]
  }, async ({ principal, request }) => {
    const [seen, waiting, calls] = await Promise.all([
      servers.listWithLoginUrls(principal), pendingDecisionsOf(app, principal), callsOf(app, principal)
    ])
    return {
      live: {},
      waiting,
      counts: Object.fromEntries(serverStates.map((state) =>
        [state, seen.filter((each) => stateOf(each) === state).length])),
      // A server keeps its error while its connection is retried.
      problems: [
        ...settingsProblemsOf(app, principal),
        ...seen.filter((each) => stateOf(each) === 'failed' || stateOf(each) === 'login' || each.error !== null)
          .map((each) => problemOf(app, principal, each))
      ],
      steps: seen.length > 0 ? [] : stepsOf(app, principal),
      endpoint: mcpEndpointUrl(app, request),
      open: anonymousAccessTexts(app),
      cost: costOf(app, principal),
      calls
    }
  })
}
export default routes

/** Returns the problems of the settings; none for users who are not admins, since they cannot correct them. */
const settingsProblemsOf = ({ system }: FastifyInstance, { isAdmin }: Principal): object[] => isAdmin
  ? system.problems().map((text) => ({ state: 'warning', name: 'The settings', text: toSentence(text) }))
  : []

function problemOf ({ kit: { base }, settings }: FastifyInstance, principal: Principal, server: ShownServer): object {
  const { name } = server
  const stored = settings.current.servers.get(name)
  const manages = stored !== undefined && canManage(principal, stored)
  return {
    state: stateOf(server),
    name,
    text: connectionErrorText(server) ?? '',
    href: serverPageUrl(base, name),
    action: repairActionOf(base, server, manages)
  }
}

/** Returns links to the pages on which the user has something to decide, each with the number of decisions. */
async function pendingDecisionsOf (app: FastifyInstance, principal: Principal): Promise<object[]> {
  const { kit: { base }, policies: { approvals } } = app
  const { size: calls } = await approvals.idsWaitingFor(principal)
  return [
    ...calls === 0 ? [] : [{ text: 'Calls to approve or deny', count: calls, href: `${base}/approvals` }],
    ...changedDefinitionsOf(app, principal).map(({ name, count }) =>
      ({ text: `Changed definitions of ${name}`, count, href: `${serverPageUrl(base, name)}/definitions` }))
  ]
}

/** Returns the servers with changed definitions that wait for an admin to accept them; none for other users. */
function changedDefinitionsOf (
  { settings, definitions }: FastifyInstance, { isAdmin }: Principal
): Array<{ name: string, count: number }> {
  const servers = isAdmin ? [...settings.current.servers.keys()] : []
  return servers.map((name) => ({ name, count: definitions.countWaiting(name) })).filter(({ count }) => count > 0)
}

/** Returns the steps that lead from a gateway without servers to an agent that calls a tool. */
function stepsOf ({ kit: { base }, keys }: FastifyInstance, principal: Principal): object[] {
  return [
    {
      heading: 'Add a server',
      text: 'Paste a client’s configuration, a command line or an address.',
      isDone: false,
      action: { label: 'Add a server', href: `${base}/add-a-server`, method: 'get', icon: 'plus', style: 'primary' }
    },
    {
      heading: 'Create a key',
      text: 'Your agent signs in with it. It opens MCP, not this console.',
      isDone: keys.list(principal).length > 0,
      action: { label: 'Keys', href: `${base}/keys`, method: 'get', icon: 'key-round' }
    },
    {
      heading: 'Connect your agent',
      text: 'Give it the MCP address and the key. The key’s page has the configuration for each client.',
      isDone: false
    }
  ]
}

/** Returns one text for each thing that callers without credentials can do. */
function anonymousAccessTexts (app: FastifyInstance): Array<{ text: string }> {
  const { overHttp, overMcp, isAuthSkipped: isSkipped } = app.auth.anonymousAccess()
  const inWords = (count: number): string => count === 1 ? 'one server' : `${count} servers`
  return [
    ...isSkipped ? ['Anyone who can reach the gateway is an admin of its API (routing.skipAuth)'] : [],
    ...overHttp > 0 ? [`The tools of ${inWords(overHttp)}, over plain HTTP`] : [],
    ...overMcp > 0 ? [`The tools of ${inWords(overMcp)}, over MCP (routing.enableBearerAuth is off)`] : []
  ].map((text) => ({ text }))
}

/**
 * Returns the sizes, in tokens, of tool lists that the user's agents read: the whole list, the list of `$smart` (if
 * enabled), and the lists of the three largest servers.
 */
function costOf ({ kit, settings }: FastifyInstance, principal: Principal): object {
  const { tools, tokens, servers } = kit.costs.ofToolList(principal)
  const isSmart = settings.current.system.smartRouting?.enabled !== false
  return {
    tools,
    tokens,
    ...isSmart && { smartTokens: kit.costs.ofToolList(principal, 'search').tokens },
    servers: servers.slice(0, 3).map((each) => ({ ...each, href: serverPageUrl(kit.base, each.name) }))
  }
}

const minute = 60_000
/** The number of bars in the chart of the last hour. */
const bars = 12

/** Returns statistics of the calls of the last hour, or the reason why calls are not recorded. */
async function callsOf ({ activities }: FastifyInstance, principal: Principal): Promise<object> {
  if (!activities.isAvailable) return { unavailable: toSentence(activities.disabledReason) }
  const from = Date.now() - 60 * minute
  const [found, p95] = await Promise.all([
    activities.series(principal, {}, { from, length: 60 * minute / bars, count: bars }),
    activities.p95(principal, { startDate: new Date(from).toISOString() })
  ])
  return {
    total: found.reduce((sum, { ok, failed }) => sum + ok + failed, 0),
    failed: found.reduce((sum, { failed }) => sum + failed, 0),
    p95,
    bars: found
  }
}

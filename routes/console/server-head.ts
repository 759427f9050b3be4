import type { FastifyInstance } from 'fastify'
import { canManage, type ItemKind, type Principal } from '../../plugins/settings/index.ts'
import { hasUserVariables } from '../../schemas/user-variables.ts'
import { urlWithQuery } from './lists.ts'
import {
  connectionErrorText, serverPageUrl, type ShownServer, stateOf, commandOrAddressOf, transportOf
} from './server-states.ts'

/** The kinds of items of a server, in the order of the tabs. */
export const serverItemKinds = ['tools', 'prompts', 'resources', 'skills'] as const satisfies readonly ItemKind[]
const titles = { tools: 'Tools', prompts: 'Prompts', resources: 'Resources', skills: 'Skills' }

/** A tool, prompt, resource or skill of a server, as the management API returns it. */
export interface ListedItem {
  readonly name?: string
  readonly uri?: string
  readonly title?: string
  readonly description?: string
  readonly enabled?: boolean
  readonly overridden?: boolean
  readonly inputSchema?: unknown
}

/** Returns the items of one kind that a server lists. */
export const listedItemsOf = (server: ShownServer, kind: ItemKind): readonly ListedItem[] =>
  JSON.parse([...server[kind].pieces()].join('')) as ListedItem[]

/** Whether a user may change a server; false for an unknown server. */
export function canManageServer ({ settings }: FastifyInstance, principal: Principal, name: string): boolean {
  const server = settings.current.servers.get(name)
  return server !== undefined && canManage(principal, server)
}

/** Whether a server needs values from this user (`userVariables`). Only stored users can set values. */
function requiresUserValues ({ settings }: FastifyInstance, { username }: Principal, name: string): boolean {
  const { servers, users } = settings.current
  return username !== undefined && users.has(username) && hasUserVariables(servers.get(name)?.config ?? {})
}

/** Returns the data that lists show about a server. @param base the path of the console */
export function serverSummaryOf (base: string, server: ShownServer): object {
  const { name, tools, config: { owner, visibility } } = server
  const error = connectionErrorText(server)
  return {
    name,
    href: serverPageUrl(base, name),
    state: stateOf(server),
    ...error !== undefined && { error },
    transport: transportOf(server),
    target: commandOrAddressOf(server),
    tools: tools.length,
    owner,
    visibility
  }
}

/**
 * Returns the data for the top of a server's pages: the server's state, and the tabs.
 * @param view the name of the current tab
 */
export function serverHeadOf (app: FastifyInstance, principal: Principal, server: ShownServer, view: string): object {
  const { base } = app.kit
  const { name } = server
  const href = serverPageUrl(base, name)
  const { warnings = [] } = server
  const sentences = warnings.filter((each) => typeof each === 'string')
  const remarks = warnings.length - sentences.length
  const isManaged = canManageServer(app, principal, name)
  const counted = remarks === 0 ? {} : { count: remarks }
  return {
    server: {
      ...serverSummaryOf(base, server),
      warnings: sentences,
      ...remarks > 0 && { remarks: { count: remarks, ...isManaged && { href: `${href}/definitions` } } },
      description: server.config.description,
      isEnabled: server.enabled,
      canManage: isManaged,
      connectedAt: server.connectedAt,
      protocolVersion: server.protocolVersion,
      loginUrl: server.oauth?.authorizationUrl
    },
    views: [
      ...serverItemKinds.map((kind) =>
        ({
          view: kind,
          title: titles[kind],
          // No count is shown until the server's lists have been read.
          ...(stateOf(server) !== 'connecting' || server[kind].length > 0) && { count: server[kind].length },
          href: urlWithQuery(href, { view: kind })
        })),
      ...principal.isAdmin ? [{ view: 'output', title: 'Output', href: urlWithQuery(href, { view: 'output' }) }] : [],
      ...isManaged
        ? [
            { view: 'definitions', title: 'Definitions', href: `${href}/definitions`, ...counted },
            { view: 'users', title: 'Users', href: urlWithQuery(href, { view: 'users' }) }
          ]
        : [],
      { view: 'configuration', title: 'Configuration', href: `${href}/configuration` },
      ...requiresUserValues(app, principal, name)
        ? [{ view: 'my-credentials', title: 'My credentials', href: `${href}/my-credentials` }]
        : []
    ].map((each) => ({ ...each, isCurrent: each.view === view }))
  }
}

import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { isIdentifiedByUri } from '../../plugins/settings/index.ts'
import { parseEnabledUpdate, filterByText, createPageRouter, formFieldText, type Visit } from './page.ts'
import { fetchResourceTemplates } from './resource.ts'
import { serverHeadOf, listedItemsOf, serverItemKinds, canManageServer, serverSummaryOf } from './server-head.ts'
import { paginate, urlWithQuery } from './lists.ts'
import {
  repairActionOf, serverPageUrl, type ShownServer, stateOf, serverStates, commandOrAddressOf
} from './server-states.ts'

/** The pages with all servers and with one server, and the forms that reload, enable or disable a server or an item. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, servers } = app
  const { base } = kit
  const { page, form, submit } = createPageRouter(app)

  page('servers', {
    title: 'Servers',
    isInNav: true,
    watch: (principal) => servers.list(principal).map((server) =>
      [server.name, stateOf(server), server.error, server.tools.length])
  }, async ({ principal, query: { q = '', state = '', page: number = '1' } }) => {
    const path = `${base}/servers`
    const named = (await servers.listWithLoginUrls(principal)).filter((server) => matchesTerm(server, q))
    const chosen = state === '' ? named : named.filter((server) => stateOf(server) === state)
    const { items, pages } = paginate(chosen, path, { q, state, page: number })
    return {
      live: {},
      q,
      ...state !== '' && { state },
      states: [
        { state: '', count: named.length, href: urlWithQuery(path, { q }), isCurrent: state === '' },
        ...serverStates.map((each) => ({
          state: each,
          count: named.filter((server) => stateOf(server) === each).length,
          href: urlWithQuery(path, { q, state: each }),
          isCurrent: state === each
        }))
      ],
      items: items.map((server) => ({
        ...serverSummaryOf(base, server),
        tokens: kit.costs.ofServer(server.name),
        action: repairActionOf(base, server, canManageServer(app, principal, server.name))
      })),
      pages
    }
  })

  page('server', {
    title: 'Server',
    path: '/servers/:name',
    watch: (principal, { name, view }) => {
      const { status, error, config, ...server } = servers.get(principal, String(name))
      const lastLine = view === 'output' && principal.isAdmin ? app.logs.list(String(name)).at(-1)?.id : undefined
      return [status, error, config, ...serverItemKinds.map((kind) => server[kind].length), lastLine]
    }
  }, async (visit) => {
    const { principal, params: { name = '' }, query: { view: requestedView, page: number = '1' } } = visit
    const views = [...serverItemKinds, 'output', ...canManageServer(app, principal, name) ? ['users'] : []]
    const view = views.find((each) => each === requestedView) ?? 'tools'
    const server = await servers.getWithLoginUrl(principal, name)
    return {
      title: name,
      live: { name, view },
      ...serverHeadOf(app, principal, server, view),
      view,
      ...view === 'users'
        ? await usersOf(app, visit, name)
        : itemsOf(kit.costs, server, { ...visit, query: { ...visit.query, view } }),
      // The templates are shown only on the first page of the list.
      templates: view === 'resources' && number === '1' && server.status === 'connected'
        ? (await fetchResourceTemplates(app, visit, name)).map(({ uriTemplate, title, description }) => ({
            name: uriTemplate,
            title,
            description,
            href: `${serverPageUrl(base, name)}/templates/${encodeURIComponent(uriTemplate)}`
          }))
        : [],
      lines: view === 'output' && principal.isAdmin
        ? app.logs.list(name).slice(-200)
          .map(({ timestamp, message }) => ({ at: new Date(timestamp).toISOString(), text: message }))
        : []
    }
  })

  const path = '/servers/:name'
  form(`${path}/items`, { effect: 'change' }, async (visit) => {
    const [kind, key] = [formFieldText(visit.form.kind), formFieldText(visit.form.key)]
    const item = `${path}/${encodeURIComponent(kind)}/${encodeURIComponent(key)}`
    return await submit(
      visit, urlWithQuery(path, { view: kind }), 'POST', `${item}/toggle`, parseEnabledUpdate(visit.form)
    )
  })
  form(`${path}/toggle`, { effect: 'change' }, async (visit) =>
    await submit(visit, path, 'POST', `${path}/toggle`, parseEnabledUpdate(visit.form)))
  form(`${path}/reload`, { effect: 'change' }, async (visit) => await submit(visit, path, 'POST', `${path}/reload`))
}
export default routes

/** A user who may use a server, as the API returns it. `via`: `owner`, `shared`, `public`, or a team (`@name`). */
interface ServerUser { readonly username: string, readonly via: string, readonly lastUsedAt?: string }

/** The texts for `via`, except for teams. */
const reasons: Readonly<Record<string, string>> = {
  owner: 'owner', shared: 'shared with this user', public: 'public'
}

/** Returns the data of one page of a server's users, filtered by the query. */
async function usersOf (
  { kit: { base, api }, activities }: FastifyInstance, { principal, request, query }: Visit, name: string
): Promise<object> {
  const { q = '', page = '1' } = query
  const href = serverPageUrl(base, name)
  const all = (await api.ask(request, 'GET', `/servers/${encodeURIComponent(name)}/users`)).data as ServerUser[]
  const chosen = filterByText(all, q, ({ username, via }) => [username, via])
  const { items, pages } = paginate(chosen, href, { view: 'users', q, page })
  return {
    q,
    pages,
    items: items.map(({ username, via, lastUsedAt }) => ({
      username,
      reason: reasons[via] ?? 'shared with the team',
      ...via.startsWith('@') && { team: via, teamHref: urlWithQuery(`${base}/teams`, { q: via.slice(1) }) },
      ...principal.isAdmin && { href: `${base}/users/${encodeURIComponent(username)}/view` },
      lastUsedAt
    })),
    isUseRecorded: activities.isAvailable,
    sharingHref: `${href}/configuration#at-arg/sharedWithUsers`
  }
}

/** Whether the name, the command or address, or the description of a server contains a search term. */
const matchesTerm = (server: ShownServer, term: string): boolean =>
  [server.name, commandOrAddressOf(server), String(server.config.description ?? '')]
    .some((text) => text.toLowerCase().includes(term.trim().toLowerCase()))

/** Returns the data of one page of a server's items, filtered by the query. */
function itemsOf (
  costs: FastifyInstance['kit']['costs'], server: ShownServer, { query, request }: Pick<Visit, 'query' | 'request'>
): object {
  const { view = 'tools', q = '', page = '1' } = query
  const kind = serverItemKinds.find((each) => each === view)
  const all = kind === undefined ? [] : listedItemsOf(server, kind)
  const chosen = filterByText(all, q, ({ name, uri, title, description }) => [name, uri, title, description])
  const path = request.url.split('?', 1)[0] ?? ''
  const { items, pages } = paginate(chosen, path, { view, q, page })
  return {
    q,
    pages,
    items: items.map((item) => {
      const { name = '', uri = '', title, description, enabled = true, overridden = false, inputSchema } = item
      const key = kind !== undefined && isIdentifiedByUri(kind) ? uri : name
      return {
        key,
        name: key === '' ? name : key,
        title,
        description,
        isEnabled: enabled,
        isOverridden: overridden,
        ...kind === 'tools' && { tokens: costs.ofValue(item) },
        href: `${path}/${kind ?? ''}/${encodeURIComponent(key)}`,
        ...inputSchema !== undefined && { schema: JSON.stringify(inputSchema, undefined, 2) }
      }
    })
  }
}

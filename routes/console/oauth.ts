import type { Static } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { ConsentRecord, OAuthClientRecord } from '../../schemas/oauth.ts'
import type { ApiAnswer } from '../../plugins/management/index.ts'
import { createPageRouter, createRemoveAction } from './page.ts'
import { paginate, pageSize, urlWithQuery } from './lists.ts'
import { serverPageUrl } from './server-states.ts'

type Client = Static<typeof OAuthClientRecord>
type Consent = Static<typeof ConsentRecord>
/** The position of a page in the API's list of clients. `page`: from 1; `total`: the number of clients. */
interface Pagination { readonly page: number, readonly total: number, readonly totalPages: number }

/** The page with OAuth clients (for admins), consents, and logins at servers. Users can end both there. */
export const oauthPages: FastifyPluginAsync = async (app) => {
  const { kit, servers } = app
  const { base, api } = kit
  const { page, form, submit } = createPageRouter(app)

  page('oauth', { title: 'OAuth', isInNav: true }, async (visit) => {
    const { principal, request } = visit
    const { page: loginsPage = '', clients: clientsPage } = visit.query
    // While the authorization server is disabled, these routes of the API respond with 404.
    const ask = async (path: string): Promise<ApiAnswer | undefined> =>
      app.oauth.settings.enabled ? await api.ask(request, 'GET', path) : undefined
    const askForClients = async (page: number): Promise<ApiAnswer | undefined> => {
      const answer = await ask(`/oauth/clients?limit=${pageSize}&page=${page}`)
      const { totalPages: last = 0 } = (answer?.pagination ?? {}) as Partial<Pagination>
      return page > last && last > 0 ? await askForClients(last) : answer
    }
    const urlOfClients = (page: number): string =>
      urlWithQuery(`${base}/oauth`, { page: loginsPage, clients: String(page) })
    return {
      parts: [
        ...principal.isAdmin
          ? [clientsPart(base, await askForClients(Math.max(1, Math.trunc(Number(clientsPage)) || 1)), urlOfClients)]
          : [],
        consentsPart(base, (await ask('/oauth/consents'))?.data as readonly Consent[] | undefined,
          principal.isAdmin ? disabledText : disabledTextForUsers),
        loginsPart(base, await servers.listWithLoginUrls(principal), { page: loginsPage, clients: clientsPage ?? '' })
      ]
    }
  })

  form('/oauth/consents/:id/remove', { effect: 'change' }, async (visit) =>
    await submit(visit, '/oauth', 'DELETE', '/oauth/consents/:id'))
  form('/servers/:name/log-out', { effect: 'change' }, async (visit) =>
    await submit(visit, '/oauth', 'DELETE', '/servers/:name/oauth'))
}

/** The page that removes an OAuth client, for admins. */
export const oauthAdminPages: FastifyPluginAsync = async (app) => {
  const { base, api } = app.kit
  createPageRouter(app).removal('/oauth/clients/:id', '/oauth', async ({ request, params: { id = '' } }) => ({
    name: ((await api.ask(request, 'GET', `/oauth/clients/${encodeURIComponent(id)}`)).data as Client).name,
    crumbs: [{ label: 'OAuth', href: `${base}/oauth` }],
    consequences: ['Its consents and tokens are removed: it loses access.']
  }))
}

const disabledText = 'The authorization server is off. Turn it on in the settings: oauthServer.enabled.'
const disabledTextForUsers = 'The authorization server is off. Only an admin can turn it on.'
const actionsColumn = { title: 'Actions', isHidden: true }
/** Returns the host of a URI. A URI without a host, such as one that opens an app, is returned unchanged. */
const hostOf = (uri: string): string => URL.canParse(uri) ? new URL(uri).host || uri : uri

/**
 * Returns the data of the table of clients.
 * @param answer one page of clients, from the API; undefined while the authorization server is disabled
 * @param urlOf returns the URL of another page of the table
 */
function clientsPart (base: string, answer: ApiAnswer | undefined, urlOf: (page: number) => string): object {
  const clients = (answer?.data ?? []) as readonly Client[]
  const { page, total, totalPages } = (answer?.pagination ?? { page: 1, total: 0, totalPages: 1 }) as Pagination
  const before = (page - 1) * pageSize
  return {
    id: 'clients',
    heading: 'Applications',
    empty: answer ? 'No application has registered.' : disabledText,
    caption: 'Applications',
    unit: total === 1 ? 'application' : 'applications',
    pages: {
      from: before + 1,
      to: before + clients.length,
      total,
      ...page > 1 && { previous: urlOf(page - 1) },
      ...page < totalPages && { next: urlOf(page + 1) }
    },
    columns: [
      { title: 'Application' }, { title: 'Redirects to' }, { title: 'Permissions' }, { title: 'Last used' },
      actionsColumn
    ],
    rows: clients.map(({ clientId, name, redirectUris, scopes, origin, lastUsedAt }) => ({
      cells: [
        { text: name, under: clientId, tags: origin === undefined ? [] : [origin] },
        [...new Set(redirectUris.map(hostOf))].join(', '),
        scopes.join(', '),
        lastUsedAt === undefined ? 'not yet' : { time: lastUsedAt },
        {
          actions: [createRemoveAction(`${base}/oauth/clients/${encodeURIComponent(clientId)}`)]
        }
      ]
    }))
  }
}

const consentsPart = (base: string, consents: readonly Consent[] | undefined, whenDisabled: string): object => ({
  id: 'consents',
  heading: 'Applications you have allowed',
  empty: consents ? 'None.' : whenDisabled,
  caption: 'Consents',
  columns: [{ title: 'Application' }, { title: 'Permissions' }, actionsColumn],
  rows: (consents ?? []).map(({ clientId, clientName, scopes }) => ({
    cells: [
      { text: clientName ?? clientId, under: clientId },
      scopes.join(', '),
      {
        actions: [
          {
            label: 'Withdraw',
            href: `${base}/oauth/consents/${encodeURIComponent(clientId)}/remove`,
            method: 'post',
            isDanger: true
          }
        ]
      }
    ]
  }))
})

function loginsPart (
  base: string, servers: Awaited<ReturnType<FastifyInstance['servers']['listWithLoginUrls']>>,
  query: Readonly<Record<'page' | 'clients', string>>
): object {
  const withLogin = servers.filter(({ status, config }) => status === 'oauth_required' || config.oauth !== undefined)
  const { items, pages } = paginate(withLogin, `${base}/oauth`, query)
  return {
    pages,
    unit: 'servers',
    id: 'logins',
    heading: 'Logins at servers',
    empty: 'No server requires a login.',
    caption: 'Logins at servers',
    columns: [{ title: 'Server' }, { title: 'State' }, actionsColumn],
    rows: items.map(({ name, status, oauth: wanted }) => ({
      cells: [
        { text: name, href: serverPageUrl(base, name) },
        status === 'oauth_required'
          ? { state: 'login' }
          : status === 'connected' ? { state: 'connected' } : 'not connected',
        {
          actions: wanted
            ? [{ label: 'Log in', href: wanted.authorizationUrl, method: 'get' }]
            : [{ label: 'Log out', href: `${serverPageUrl(base, name)}/log-out`, method: 'post' }]
        }
      ]
    }))
  }
}

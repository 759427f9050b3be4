import type { Static } from '@sinclair/typebox'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { ConsentRecord, OAuthClientRecord } from '../../schemas/oauth.ts'
import { pagesOf, removeAction } from './page.ts'
import { paginate } from './lists.ts'
import { serverPageUrl } from './server-states.ts'

type Client = Static<typeof OAuthClientRecord>
type Consent = Static<typeof ConsentRecord>

/** Page: OAuth clients and consents, and logins at upstream servers. */
export const oauth: FastifyPluginAsync = async (app) => {
  const { kit, servers } = app
  const { base, api } = kit
  const { page, form, submit } = pagesOf(app)

  page('oauth', { title: 'OAuth', isInNav: true }, async (visit) => {
    const { principal, request } = visit
    // While the authorization server is disabled, these routes do not exist.
    const list = async (path: string): Promise<unknown> =>
      app.oauth.settings.enabled ? (await api.ask(request, 'GET', path)).data : undefined
    return {
      parts: [
        ...principal.isAdmin
          ? [clientsPart(base, await list('/oauth/clients?limit=100') as readonly Client[] | undefined)]
          : [],
        consentsPart(base, await list('/oauth/consents') as readonly Consent[] | undefined),
        loginsPart(base, await servers.listWithLoginUrls(principal), visit.query.page)
      ]
    }
  })

  form('/oauth/consents/:id/remove', { effect: 'change' }, async (visit) =>
    await submit(visit, '/oauth', 'DELETE', '/oauth/consents/:id'))
  form('/servers/:name/log-out', { effect: 'change' }, async (visit) =>
    await submit(visit, '/oauth', 'DELETE', '/servers/:name/oauth'))
}

/** Page to remove an OAuth client, for admins. */
export const changeOAuth: FastifyPluginAsync = async (app) => {
  const { base, api } = app.kit
  pagesOf(app).removal('/oauth/clients/:id', '/oauth', async ({ request, params: { id = '' } }) => ({
    name: ((await api.ask(request, 'GET', `/oauth/clients/${encodeURIComponent(id)}`)).data as Client).name,
    crumbs: [{ label: 'OAuth', href: `${base}/oauth` }],
    consequences: ['Its consents and tokens are removed: it loses access.']
  }))
}

const disabledText = 'The authorization server is off. Turn it on in the settings: oauthServer.enabled.'
const actionsColumn = { title: 'Actions', isHidden: true }
/** Returns the host of a URI; a URI without one unchanged, such as that of an app. */
const hostOf = (uri: string): string => URL.canParse(uri) ? new URL(uri).host || uri : uri

const clientsPart = (base: string, clients: readonly Client[] | undefined): object => ({
  id: 'clients',
  heading: 'Applications',
  empty: clients ? 'No application has registered.' : disabledText,
  caption: 'Applications',
  columns: [
    { title: 'Application' }, { title: 'Redirects to' }, { title: 'Permissions' }, { title: 'Last used' }, actionsColumn
  ],
  rows: (clients ?? []).map(({ clientId, name, redirectUris, scopes, origin, lastUsedAt }) => ({
    cells: [
      { text: name, under: clientId, tags: origin === undefined ? [] : [origin] },
      [...new Set(redirectUris.map(hostOf))].join(', '),
      scopes.join(', '),
      lastUsedAt === undefined ? 'not yet' : { time: lastUsedAt },
      {
        actions: [removeAction(`${base}/oauth/clients/${encodeURIComponent(clientId)}`)]
      }
    ]
  }))
})

const consentsPart = (base: string, consents: readonly Consent[] | undefined): object => ({
  id: 'consents',
  heading: 'Applications you have allowed',
  empty: consents ? 'None.' : disabledText,
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
  base: string, servers: Awaited<ReturnType<FastifyInstance['servers']['listWithLoginUrls']>>, page = '1'
): object {
  const withLogin = servers.filter(({ status, config }) => status === 'oauth_required' || config.oauth !== undefined)
  const { items, pages } = paginate(withLogin, `${base}/oauth`, { page })
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

import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { linkedSnippets } from '../../plugins/base/config/index.ts'
import { ApiError, type PageData } from '../../plugins/management/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import {
  parseEnabledUpdate, mcpEndpointUrl, filterByText, formFieldValues, createPageRouter, createRemoveAction,
  formFieldText, createToggleAction, type SubmittedForm, type Visit
} from './page.ts'
import { asksForOtherChoices, maxShownChoices, shownChoicesOf } from './shown-choices.ts'
import { paginate } from './lists.ts'

type Key = ReturnType<FastifyInstance['keys']['list']>[number]

/** The pages that list, create, disable and remove bearer keys. A new key is shown with configurations for clients. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, keys, servers, groups, users } = app
  const { base, api, renderer } = kit
  const { page, form, edit, removal, submit } = createPageRouter(app)

  page('keys', {
    title: 'Keys',
    isInNav: true,
    watch: (principal) => keys.list(principal)
  }, ({ principal, query: { q = '', page: number = '1' } }) => {
    const chosen = filterByText(keys.list(principal), q, ({ name, owner, token }) => [name, owner, token])
    const { items, pages } = paginate(chosen, `${base}/keys`, { q, page: number })
    return { live: {}, q, pages, items: items.map((key) => toPageData(base, key)) }
  })

  /** Returns the data of the form for a new key, with the groups and servers to choose from. */
  const newKeyPage = ({ principal, form: sent }: Visit): PageData => {
    const find = formFieldText(sent.find)
    const choose = (field: string, names: readonly string[]): object => {
      const pick = shownChoicesOf(names, new Set(formFieldValues(sent[field])), find)
      return { ...pick, isLong: names.length > maxShownChoices }
    }
    return {
      title: 'Create a key',
      find,
      users: principal.isAdmin ? users.list().map(({ username }) => username) : [],
      groups: choose('allowedGroups', principal.isAdmin ? groups.list(principal).map(({ name }) => name) : []),
      servers: choose('allowedServers', principal.isAdmin ? servers.names(principal) : [])
    }
  }
  edit('key-new', { title: 'Create a key', path: '/keys/new' }, newKeyPage, async (visit) => {
    const { principal, request, reply, form } = visit
    if (asksForOtherChoices(form)) {
      renderer.send(reply, 'key-new', { ...newKeyPage(visit), values: form })
      return undefined
    }
    if (Date.parse(expiryIn(form)) <= Date.now()) {
      throw new ApiError(400, { message: '"expiresAt": this day is over in UTC, so the key could not be used' })
    }
    const created = (await api.ask(request, 'POST', '/auth/keys', newKeyIn(principal, form))).data as Key
    const { name, token } = created
    const endpoint = `${mcpEndpointUrl(app, request)}${routeIn(created)}`
    // Shown without a redirect, so that nothing has to store the token. Browsers ask before they reload this page.
    renderer.send(reply, 'key-made', {
      title: 'Key created',
      name,
      token,
      opens: accessTextOf(created),
      endpoint,
      clients: linkedSnippets({ url: endpoint, key: token }).map(({ client, where, needs, text, link }) => ({
        title: client,
        where: `${where === 'shell' ? 'In a terminal' : where}${needs === undefined ? '' : `; needs ${needs}`}`,
        text,
        link
      }))
    })
    return undefined
  })

  form('/keys/:id/toggle', { effect: 'change' }, async (visit) =>
    await submit(visit, '/keys', 'PUT', '/auth/keys/:id', parseEnabledUpdate(visit.form)))

  removal('/keys/:id', '/keys', ({ principal, params: { id = '' } }) => ({
    name: keys.get(principal, id).name,
    noun: 'key',
    crumbs: [{ label: 'Keys', href: `${base}/keys` }],
    consequences: ['Agents that use it are refused from then on, and their sessions and calls end.']
  }), async (visit) => await submit(visit, '/keys', 'DELETE', '/auth/keys/:id'))
}
export default routes

/**
 * Returns the path, below `/mcp`, of the route to use with a new key: the path of the first group or server that the
 * key is limited to; or '', the global route, if there is none.
 */
function routeIn ({ accessType, allowedGroups = [], allowedServers = [] }: Key): string {
  const first = [...allowedGroups, ...allowedServers][0]
  return accessType === 'all' || first === undefined ? '' : `/${encodeURIComponent(first)}`
}

/** Returns the expiry in a submitted form; '' if there is none. A date without a time means its end, in UTC. */
function expiryIn (form: SubmittedForm): string {
  const text = formFieldText(form.expiresAt)
  return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59Z` : text
}

/**
 * Returns the request body for a new key. Users without admin rights can only create keys of the kind `user` that open
 * everything that the user can see.
 */
function newKeyIn ({ isAdmin }: Principal, form: SubmittedForm): object {
  const expiresAt = expiryIn(form)
  const own = { name: formFieldText(form.name), ...expiresAt !== '' && { expiresAt } }
  if (!isAdmin) return own
  const kind = formFieldText(form.kind) === 'system' ? 'system' : 'user'
  return {
    ...own,
    kind,
    ...kind === 'user' && formFieldText(form.owner) !== '' && { owner: formFieldText(form.owner) },
    ...formFieldText(form.accessType) === 'custom'
      ? {
          accessType: 'custom',
          allowedGroups: formFieldValues(form.allowedGroups),
          allowedServers: formFieldValues(form.allowedServers)
        }
      : { accessType: 'all' }
  }
}

function toPageData (base: string, key: Key): object {
  const { id, name, token, kind, owner, enabled, expiresAt, lastUsedAt, inactive } = key
  const href = `${base}/keys/${id}`
  return {
    name,
    masked: token,
    kind,
    owner,
    opens: accessTextOf(key),
    isEnabled: enabled,
    isExpired: typeof expiresAt === 'string' && Date.parse(expiresAt) <= Date.now(),
    expiresAt,
    lastUsedAt,
    problem: inactive,
    actions: [createToggleAction(href, enabled), createRemoveAction(href)]
  }
}

/** Returns a phrase that tells what a key gives access to. */
function accessTextOf ({ kind, accessType, allowedGroups, allowedServers }: Key): string {
  if (accessType !== 'all') return [...allowedGroups ?? [], ...allowedServers ?? []].join(', ') || 'nothing'
  return kind === 'user' ? 'what its owner sees' : 'everything, and the API'
}

import type { FastifyPluginAsync } from 'fastify'
import { found, noticeOf, pagesOf, textOf, type Visit } from './page.ts'
import { summaryOf } from './server-head.ts'
import { partOf, type ServerState } from './states.ts'

const rule = 'At least 8 characters, with a letter, a digit and another character.'

/** What a user sees, as the API answers it. */
interface SeenByUser {
  readonly servers: readonly ServerState[]
  readonly groups: ReadonlyArray<{ readonly name: string, readonly servers: readonly string[] }>
  readonly tools: ReadonlyArray<{ readonly server: string, readonly name: string }>
}

/** Pages: the users and their roles. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, keys, settings, users } = app
  const { base, api } = kit
  const { page, form } = pagesOf(app)
  const pathOf = (username: string): string => `/users/${encodeURIComponent(username)}`

  page('users', {
    title: 'Users', isInNav: true, watch: () => users.list()
  }, ({ principal, query: { q = '', page: number = '1' } }) => {
    const chosen = found(users.list(), q, ({ username }) => [username])
    const { items, pages } = partOf(chosen, `${base}/users`, { q, page: number })
    const all = [...settings.current.servers.values()]
    const keysOf = keys.list(principal)
    return {
      live: {},
      q,
      pages,
      items: items.map(({ username, isAdmin }) => ({
        username,
        isAdmin,
        isYou: username === principal.username,
        servers: all.filter(({ config: { owner } }) => owner === username).length,
        keys: keysOf.filter(({ owner }) => owner === username).length,
        actions: [
          { label: 'See as', href: `${base}${pathOf(username)}/view`, method: 'get' },
          { label: 'Change', href: `${base}${pathOf(username)}`, method: 'get' },
          ...username === principal.username
            ? []
            : [{ label: 'Remove', href: `${base}${pathOf(username)}/remove`, method: 'get', isDanger: true }]
        ]
      }))
    }
  })

  const added = { title: 'Add a user', action: `${base}/add-a-user`, rule, isAdmin: false }
  page('user', { title: added.title, path: '/add-a-user' }, () => added)
  form('/add-a-user', {
    effect: 'change', again: () => ({ page: 'user', data: added })
  }, async ({ request, form: sent }) => {
    const [username, password] = [textOf(sent.username), textOf(sent.password)]
    const done = await api.ask(request, 'POST', '/users', {
      username, password, isAdmin: textOf(sent.isAdmin) === 'true'
    })
    return { to: '/users', notice: noticeOf(done) }
  })

  const changed = async ({
    request, params: { username = '' }
  }: Visit): Promise<typeof added & { username: string }> => {
    const { data } = await api.ask(request, 'GET', pathOf(username))
    const { isAdmin } = data as { isAdmin: boolean }
    return { title: username, username, isAdmin, action: `${base}${pathOf(username)}`, rule }
  }
  page('user', { title: 'User', path: '/users/:username' }, changed)
  form('/users/:username', {
    effect: 'change', again: async (visit) => ({ page: 'user', data: await changed(visit) })
  }, async ({ request, params: { username = '' }, form: sent }) => {
    const password = textOf(sent.password)
    const done = await api.ask(request, 'PUT', pathOf(username), {
      isAdmin: textOf(sent.isAdmin) === 'true', ...password !== '' && { newPassword: password }
    })
    return { to: '/users', notice: noticeOf(done) }
  })

  page('user-view', {
    title: 'As a user', path: '/users/:username/view'
  }, async ({ request, params: { username = '' } }) => {
    const { data } = await api.ask(request, 'GET', `${pathOf(username)}/view`)
    const { servers, groups, tools } = data as SeenByUser
    const names = new Map<string, string[]>()
    for (const { server, name } of tools) names.set(server, [...names.get(server) ?? [], name])
    return {
      title: `As ${username} sees it`,
      crumbs: [{ label: 'Users', href: `${base}/users` }, { label: username, href: `${base}${pathOf(username)}` }],
      username,
      servers: servers.map((server) => summaryOf(base, server)),
      groups,
      toolCount: tools.length,
      tools: [...names].map(([server, listed]) => ({ server, names: listed }))
    }
  })

  page('confirm', {
    title: 'Remove', path: '/users/:username/remove'
  }, async ({ request, principal, params: { username = '' } }) => {
    await api.ask(request, 'GET', pathOf(username))
    const own = keys.list(principal).filter(({ owner }) => owner === username).length
    return {
      title: `Remove ${username}?`,
      subject: username,
      crumbs: [{ label: 'Users', href: `${base}/users` }],
      consequences: [
        'The logins, sessions and tokens of this user: they end at once.',
        `${own === 1 ? 'One key' : `${own} keys`}: no agent gets in with ${own === 1 ? 'it' : 'them'} any more.`
      ],
      keeps: 'Servers and groups of this user stay.',
      confirm: { label: `Remove ${username}`, href: `${base}${pathOf(username)}/remove`, method: 'post' },
      cancel: `${base}/users`
    }
  })
  form('/users/:username/remove', { effect: 'change' }, async ({ request, params: { username = '' } }) =>
    ({ to: '/users', notice: noticeOf(await api.ask(request, 'DELETE', pathOf(username))) }))
}
export default routes

import type { FastifyPluginAsync } from 'fastify'
import { listNames } from '../../plugins/base/errors/index.ts'
import { consequencesOf } from '../../plugins/identity/index.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import {
  filterByText, noticeOfAnswer, createPageRouter, createRemoveAction, revisionIn, formFieldText
} from './page.ts'
import { serverSummaryOf } from './server-head.ts'
import { paginate } from './lists.ts'
import type { ShownServer } from './server-states.ts'

const passwordRule = 'At least 8 characters, with a letter, a digit and another character.'

/** The servers, groups and tools that a user can see, as the API returns them. */
interface SeenByUser {
  readonly servers: readonly ShownServer[]
  readonly groups: ReadonlyArray<{ readonly name: string, readonly servers: readonly string[] }>
  readonly tools: ReadonlyArray<{ readonly server: string, readonly name: string }>
}

/** The pages that list, add, change and remove users, and show what a user can see. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, keys, settings, users } = app
  const { base, api } = kit
  const { page, edit, removal, submit } = createPageRouter(app)
  const pathOf = (username: string): string => `/users/${encodeURIComponent(username)}`

  page('users', {
    title: 'Users', isInNav: true, watch: () => users.list()
  }, ({ principal, query: { q = '', page: number = '1' } }) => {
    const chosen = filterByText(users.list(), q, ({ username }) => [username])
    const { items, pages } = paginate(chosen, `${base}/users`, { q, page: number })
    const all = [...settings.current.servers.values()]
    const keysOf = keys.list(principal)
    return {
      live: {},
      q,
      pages,
      items: items.map(({ username, isAdmin }) => ({
        username,
        href: `${base}${pathOf(username)}`,
        isAdmin,
        isYou: username === principal.username,
        servers: all.filter(({ config: { owner } }) => owner === username).length,
        keys: keysOf.filter(({ owner }) => owner === username).length,
        actions: [
          { label: 'View as', href: `${base}${pathOf(username)}/view`, method: 'get' },
          ...username === principal.username
            ? []
            : [createRemoveAction(`${base}${pathOf(username)}`)]
        ]
      }))
    }
  })

  const newUserPage = { title: 'Add a user', action: `${base}/add-a-user`, rule: passwordRule, isAdmin: false }
  edit('user', { title: newUserPage.title, path: '/add-a-user' }, () => newUserPage, async (visit) => {
    const { username, password, isAdmin } = visit.form
    return await submit(visit, '/users', 'POST', '/users', {
      username: formFieldText(username), password: formFieldText(password), isAdmin: formFieldText(isAdmin) === 'true'
    })
  })

  edit('user', { title: 'User', path: '/users/:username' }, async ({ request, params: { username = '' } }) => {
    const { data } = await api.ask(request, 'GET', pathOf(username))
    const { isAdmin } = data as { isAdmin: boolean }
    return {
      title: username,
      username,
      isAdmin,
      action: `${base}${pathOf(username)}`,
      rule: passwordRule,
      revision: revisionOfRecord(users.getShown(username)),
      stored: `Rights: ${isAdmin ? 'Admin' : 'User'}`
    }
  }, async ({ request, params: { username = '' }, form: sent }) => {
    const password = formFieldText(sent.password)
    const isAdmin = formFieldText(sent.isAdmin) === 'true'
    const isDemoted = !isAdmin && users.getShown(username).isAdmin && formFieldText(sent.confirmed) !== 'true'
    const change = {
      ...!isDemoted && { isAdmin }, ...password !== '' && { newPassword: password }
    }
    const done = Object.keys(change).length === 0
      ? {}
      : await api.ask(request, 'PUT', pathOf(username), change, revisionIn(sent))
    // The page that asks for confirmation must not contain a password, so a new password is saved before.
    return isDemoted
      ? { to: `${pathOf(username)}/demote`, ...password !== '' && { notice: noticeOfAnswer(done) } }
      : { to: '/users', notice: noticeOfAnswer(done) }
  })

  page('confirm', {
    title: 'Admin rights', path: '/users/:username/demote'
  }, ({ principal, params: { username = '' } }) => {
    const found = consequencesOf(settings, principal, username, 'demotion')
    return {
      title: `Remove the admin rights of ${username}?`,
      subject: `the admin rights of ${username}`,
      crumbs: [{ label: 'Users', href: `${base}/users` }, { label: username, href: `${base}${pathOf(username)}` }],
      consequences: [
        'Access to the admin pages, and the sessions and tokens with these rights, end at once.',
        ...consequenceTexts(found)
      ],
      keeps: 'What this user owns stays. If you grant the rights again, everything works as before.',
      isUndoable: true,
      confirm: {
        label: 'Remove the admin rights',
        href: `${base}${pathOf(username)}`,
        method: 'post',
        icon: 'x',
        fields: { isAdmin: 'false', confirmed: 'true' }
      },
      cancel: `${base}${pathOf(username)}`
    }
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
      servers: servers.map((server) => serverSummaryOf(base, server)),
      groups,
      toolCount: tools.length,
      tools: [...names].map(([server, listed]) => ({ server, names: listed }))
    }
  })

  removal('/users/:username', '/users', async ({ request, principal, params: { username = '' } }) => {
    await api.ask(request, 'GET', pathOf(username))
    const found = consequencesOf(settings, principal, username, 'removal')
    return {
      name: username,
      crumbs: [{ label: 'Users', href: `${base}/users` }],
      consequences: ['The logins, sessions and tokens of this user end at once.', ...consequenceTexts(found)],
      keeps: 'Recorded calls of this user stay.'
    }
  })
}
export default routes

/** Returns the number of things and their names, such as `2 keys ("a", "b")`. @param noun in the singular */
const countWithNames = (names: readonly string[], noun: string): string =>
  `${names.length === 1 ? `One ${noun}` : `${names.length} ${noun}s`} (${listNames(names)})`

/** Returns a sentence for each consequence of removing or demoting a user. */
const consequenceTexts = (found: ReturnType<typeof consequencesOf>): string[] => ([
  [found.removedKeys, 'key', 'removed, including those made for others: agents can no longer use them'],
  [found.inactiveKeys, 'key', 'refused from then on: they work only while this user is an admin'],
  [found.passedServers, 'server', 'passed to admin, and private from then on'],
  [found.stoppedServers, 'server', 'stopped until an admin reviews them, and saves or enables them'],
  [found.restrictedServers, 'server',
    'limited like any user’s servers: no environment variables, public addresses only'],
  [found.passedGroups, 'group', 'passed to admin']
] as const).filter(([names]) => names.length > 0)
  .map(([names, noun, what]) => `${countWithNames(names, noun)}: ${what}.`)

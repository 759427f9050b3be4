import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { namesHint, namesIn, type PageData } from '../../plugins/management/index.ts'
import { revisionOf } from '../entity-tag.ts'
import { type Form, filterByText, fieldLinesOf, noticeOf, pagesOf, revisionIn, textOf, type Visit } from './page.ts'
import { listPageOf } from './states.ts'

type Team = ReturnType<FastifyInstance['teams']['list']>[number]

const pathOf = (name: string): string => `/teams/${encodeURIComponent(name)}`

/** Page: the teams that a user belongs to; for admins, all teams. */
export const teams: FastifyPluginAsync = async (app) => {
  const { base } = app.kit
  pagesOf(app).page('teams', {
    title: 'Teams', isInNav: true, watch: (principal) => app.teams.list(principal)
  }, ({ principal, query: { q = '', page: number = '1' } }) => {
    const chosen = filterByText(app.teams.list(principal), q, ({ name, description }) => [name, description])
    const { items, pages } = listPageOf(chosen, `${base}/teams`, { q, page: number })
    const { servers } = app.settings.current
    return {
      live: {},
      q,
      pages,
      addHref: principal.isAdmin ? `${base}/teams/new` : undefined,
      items: items.map(({ name, description, members, claims = [] }) => ({
        name,
        href: principal.isAdmin ? `${base}${pathOf(name)}` : undefined,
        description,
        members,
        claims,
        servers: principal.isAdmin
          ? [...servers.values()].filter(({ config }) => config.sharedWithUsers?.includes(`@${name}`)).length
          : undefined,
        actions: principal.isAdmin
          ? [{ label: 'Remove', href: `${base}${pathOf(name)}/remove`, method: 'get', isDanger: true }]
          : []
      }))
    }
  })
}

/** Forms to change teams, for admins. */
export const changeTeams: FastifyPluginAsync = async (app) => {
  const { kit, keys } = app
  const { base, api } = kit
  const { page, form } = pagesOf(app)
  const crumbs = [{ label: 'Teams', href: `${base}/teams` }]

  const added = {
    title: 'Create a team',
    lead: 'Servers are shared with the whole team. A team’s key opens what is shared with the team.',
    crumbs,
    action: `${base}/teams/new`,
    submit: 'Create team',
    cancel: `${base}/teams`,
    fields: fieldsOf()
  }
  page('form', { title: added.title, path: '/teams/new' }, () => added)
  form('/teams/new', { effect: 'change', again: () => ({ page: 'form', data: added }) }, async ({ request, form }) => {
    const done = await api.ask(request, 'POST', '/teams', { name: textOf(form.name), ...askedTeam(form) })
    return { to: '/teams', notice: noticeOf(done) }
  })

  const changed = ({ principal, params: { name = '' } }: Visit): PageData => {
    const team = app.teams.get(principal, name)
    return {
      ...added,
      title: name,
      lead: 'Changes take effect at once, in open sessions too.',
      revision: revisionOf(team),
      stored: JSON.stringify(team, undefined, 2),
      action: `${base}${pathOf(name)}`,
      submit: 'Save',
      fields: fieldsOf(team)
    }
  }
  page('form', { title: 'Team', path: '/teams/:name' }, changed)
  form('/teams/:name', {
    effect: 'change', again: (visit) => ({ page: 'form', data: changed(visit) })
  }, async ({ request, params: { name = '' }, form }) => ({
    to: '/teams', notice: noticeOf(await api.ask(request, 'PUT', pathOf(name), askedTeam(form), revisionIn(form)))
  }))

  page('confirm', { title: 'Remove', path: '/teams/:name/remove' }, ({ principal, params: { name = '' } }) => {
    app.teams.get(principal, name)
    const own = keys.list(principal).filter(({ owner }) => owner === `@${name}`)
    return {
      title: `Remove the team ${name}?`,
      subject: `the team ${name}`,
      crumbs,
      consequences: [
        'Its members lose access to what is shared with it, at once.',
        ...own.map((key) => `Its key ${JSON.stringify(key.name)}: agents can no longer use it.`)
      ],
      keeps: 'Its members and the servers stay.',
      confirm: { label: 'Remove the team', href: `${base}${pathOf(name)}/remove`, method: 'post' },
      cancel: `${base}/teams`
    }
  })
  form('/teams/:name/remove', { effect: 'change' }, async ({ request, params: { name = '' } }) =>
    ({ to: '/teams', notice: noticeOf(await api.ask(request, 'DELETE', pathOf(name))) }))
}

/** Returns the fields of the form. @param team undefined for a new one */
function fieldsOf (team?: Team): object[] {
  return [
    ...team
      ? []
      : [{ name: 'name', label: 'Name', hint: 'To share a server with it, write @ and this name.', required: true }],
    { name: 'description', label: 'Description', value: team?.description },
    {
      name: 'members',
      label: 'Members',
      type: 'textarea',
      rows: 4,
      hint: `Usernames ${namesHint}. Members through a login group stay members.`,
      value: team?.members.join('\n')
    },
    {
      name: 'claims',
      label: 'Login groups',
      type: 'textarea',
      rows: 4,
      hint: 'Groups of the login provider, one per line. People who log in with one of them are members until their ' +
        'next login.',
      value: team?.claims?.join('\n')
    }
  ]
}

const askedTeam = (form: Form): object => ({
  description: textOf(form.description), members: namesIn(textOf(form.members)), claims: fieldLinesOf(form.claims)
})

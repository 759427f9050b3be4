import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { namesHint, namesIn } from '../../plugins/management/index.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import {
  type SubmittedForm, filterByText, formFieldLines, createPageRouter, createRemoveAction, formFieldText
} from './page.ts'
import { paginate } from './lists.ts'

type Team = ReturnType<FastifyInstance['teams']['list']>[number]

const pathOf = (name: string): string => `/teams/${encodeURIComponent(name)}`

/** The page with the teams that the user belongs to; for admins, with all teams. */
export const teamsPages: FastifyPluginAsync = async (app) => {
  const { base } = app.kit
  createPageRouter(app).page('teams', {
    title: 'Teams', isInNav: true, watch: (principal) => app.teams.list(principal)
  }, ({ principal, query: { q = '', page: number = '1' } }) => {
    const chosen = filterByText(app.teams.list(principal), q, ({ name, description }) => [name, description])
    const { items, pages } = paginate(chosen, `${base}/teams`, { q, page: number })
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
        actions: principal.isAdmin ? [createRemoveAction(`${base}${pathOf(name)}`)] : []
      }))
    }
  })
}

/** The pages that create, change and remove teams, for admins. */
export const teamsAdminPages: FastifyPluginAsync = async (app) => {
  const { kit: { base }, keys } = app
  const { edit, removal, submit } = createPageRouter(app)
  const crumbs = [{ label: 'Teams', href: `${base}/teams` }]

  const newTeamPage = {
    title: 'Create a team',
    lead: 'Servers are shared with the whole team. A team’s key opens what is shared with the team.',
    crumbs,
    action: `${base}/teams/new`,
    submit: 'Create team',
    cancel: `${base}/teams`,
    fields: fieldsOf()
  }
  edit('form', { title: newTeamPage.title, path: '/teams/new' }, () => newTeamPage, async (visit) =>
    await submit(visit, '/teams', 'POST', '/teams', { name: formFieldText(visit.form.name), ...teamIn(visit.form) }))

  edit('form', { title: 'Team', path: '/teams/:name' }, ({ principal, params: { name = '' } }) => {
    const team = app.teams.get(principal, name)
    return {
      ...newTeamPage,
      title: name,
      lead: 'Changes take effect at once, in open sessions too.',
      revision: revisionOfRecord(team),
      stored: JSON.stringify(team, undefined, 2),
      action: `${base}${pathOf(name)}`,
      submit: 'Save',
      fields: fieldsOf(team)
    }
  }, async (visit) => await submit(visit, '/teams', 'PUT', '/teams/:name', teamIn(visit.form)))

  removal('/teams/:name', '/teams', ({ principal, params: { name = '' } }) => {
    app.teams.get(principal, name)
    const own = keys.list(principal).filter(({ owner }) => owner === `@${name}`)
    return {
      name,
      noun: 'team',
      crumbs,
      consequences: [
        'Its members lose access to what is shared with it, at once.',
        ...own.map((key) => `Its key ${JSON.stringify(key.name)}: agents can no longer use it.`)
      ],
      keeps: 'Its members and the servers stay.'
    }
  })
}

/** Returns the fields of a team's form. @param team the stored team; undefined for a new one */
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

const teamIn = (form: SubmittedForm): object => ({
  description: formFieldText(form.description),
  members: namesIn(
    formFieldText(form.members)
  ),
  claims: formFieldLines(form.claims)
})

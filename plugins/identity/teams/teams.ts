import fp from 'fastify-plugin'
import { foldUsername } from '../../../db/invariants.ts'
import type { Change, Snapshot } from '../../../db/store.ts'
import type { Team } from '../../../schemas/teams.ts'
import { checkReadOnlyMembers } from '../../base/body/index.ts'
import { errors, listNames, noSuchError } from '../../base/errors/index.ts'
import {
  isMemberByLogin, teamOfKeyOwner, type Principal, type Settings, teamMembers, teamReference, teamsOf
} from '../../settings/index.ts'
import { changesForUnsharingWith } from '../users/account.ts'
import { canonicalUsername, storedUsernameOf, usernameProblem } from '../users/rules.ts'

/**
 * A team as the API returns it. `members` includes the users who are members because of the groups in their last login;
 * `claims` is absent for callers who are not admins.
 */
type ShownTeam = Required<Pick<Team, 'name' | 'members'>> & Pick<Team, 'description' | 'claims'>
type TeamChange = Partial<Team>
interface TeamResult { readonly data: ShownTeam, readonly warnings: string[] }

/** Manages the teams. Admins change teams; other users see the teams to which they belong. */
export class Teams {
  readonly #settings: Settings
  readonly #readonly: boolean

  /** @param readonly whether READONLY is set; then logins do not change memberships */
  constructor (settings: Settings, readonly: boolean) {
    this.#settings = settings
    this.#readonly = readonly
  }

  /** Returns the teams that a principal may see: for an admin, all teams; otherwise the principal's own teams. */
  list (principal: Principal): ShownTeam[] {
    const snapshot = this.#settings.current
    const own = new Set(principal.isAdmin ? [] : teamsOf(snapshot, principal))
    return [...snapshot.teams.values()].filter(({ name }) => principal.isAdmin || own.has(name))
      .map((team) => toShownTeam(snapshot, principal, team))
  }

  /** Returns a team. @throws NoSuch, also for a team that the principal may not see */
  get (principal: Principal, name: string): ShownTeam {
    const snapshot = this.#settings.current
    const team = requireTeam(snapshot, name)
    if (!principal.isAdmin && !teamsOf(snapshot, principal).includes(team.name)) throw noSuchError('team', name)
    return toShownTeam(snapshot, principal, team)
  }

  /** Creates a team. @throws InvalidInput if the name is invalid or taken */
  async create (by: Principal, { name: sentName, ...input }: TeamChange & { name: string }): Promise<TeamResult> {
    const name = canonicalUsername(sentName)
    const problem = usernameProblem(name, 'name')
    if (problem !== undefined) throw new errors.InvalidInput(`"name": ${problem}`)
    const snapshot = await this.#settings.change((base) => {
      const folded = foldUsername(name)
      if ([...base.teams.keys()].some((other) => foldUsername(other) === folded)) {
        throw new errors.InvalidInput(`There is already a team named ${JSON.stringify(name)}`)
      }
      return [{ entity: 'teams', key: name, value: changedTeam(base, { name, members: [] }, input) }]
    }, by)
    return resultOf(snapshot, by, name)
  }

  /** Changes the properties of a team that are sent. @throws NoSuch, InvalidInput for a changed name */
  async update (by: Principal, name: string, input: TeamChange): Promise<TeamResult> {
    checkReadOnlyMembers(input, this.get(by, name), ['name'])
    const snapshot = await this.#settings.change((base) => {
      const stored = requireTeam(base, name)
      return [{ entity: 'teams', key: stored.name, value: changedTeam(base, stored, input) }]
    }, by)
    return resultOf(snapshot, by, name)
  }

  /**
   * Removes a team and its keys, and stops sharing servers with it, so that a later team of that name inherits nothing.
   * @throws NoSuch
   */
  async remove (by: Principal, name: string): Promise<void> {
    await this.#settings.change((base) => {
      const team = requireTeam(base, name)
      const keys = [...base.keys.values()].filter(({ kind, owner }) =>
        kind === 'user' && teamOfKeyOwner(base, owner) === team)
      return [
        { entity: 'teams', key: team.name, value: undefined },
        ...keys.map(({ id }): Change => ({ entity: 'bearerKeys', key: id, value: undefined })),
        ...changesForUnsharingWith(base, teamReference(team.name))
      ]
    }, by)
  }

  /**
   * Records the groups in a user's OpenID Connect login, as far as teams name them in `claims`. They replace the groups
   * of the user's previous login.
   * @throws StorageAway
   */
  async recordLoginGroups (username: string, groups: readonly string[]): Promise<void> {
    if (this.#readonly) return
    await this.#settings.change(({ teams, users }) => {
      const user = users.get(username)
      const named = new Set([...teams.values()].flatMap(({ claims = [] }) => claims))
      const loginGroups = [...new Set(groups)].filter((group) => named.has(group)).sort()
      const { loginGroups: former = [], ...rest } = user ?? {}
      if (!user || JSON.stringify(former) === JSON.stringify(loginGroups)) return []
      const value = { ...rest, username, ...(loginGroups.length > 0 && { loginGroups }) }
      return [{ entity: 'users', key: username, value }]
    }, username)
  }
}

/** Finds a team by its name, in any spelling with the same canonical form. @throws NoSuch */
function requireTeam ({ teams }: Snapshot, name: string): Team {
  const team = teams.get(storedUsernameOf(teams, name))
  if (!team) throw noSuchError('team', name)
  return team
}

const toShownTeam = (snapshot: Snapshot, { isAdmin }: Principal, team: Team): ShownTeam => ({
  name: team.name,
  ...(team.description !== undefined && { description: team.description }),
  members: teamMembers(snapshot, team),
  ...(isAdmin && team.claims !== undefined && { claims: team.claims })
})

/**
 * Returns a team after a change. If a client sends back a list of members that it has read, the list includes users who
 * are members because of their login groups: these are not stored as permanent members.
 */
function changedTeam ({ users }: Snapshot, stored: Team, { name: _, members, ...input }: TeamChange): Team {
  const former = new Set(stored.members)
  const isByLoginOnly = (name: string): boolean => {
    const user = users.get(name)
    return user !== undefined && !former.has(name) && isMemberByLogin(stored, user)
  }
  const named = members?.map((name) => storedUsernameOf(users, name)).filter((name) => !isByLoginOnly(name))
  return {
    ...stored,
    ...Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)),
    ...(named && { members: [...new Set(named)] })
  }
}

function resultOf (snapshot: Snapshot, by: Principal, name: string): TeamResult {
  const team = requireTeam(snapshot, name)
  const unknown = (team.members ?? []).filter((member) => !snapshot.users.has(member))
  return { data: toShownTeam(snapshot, by, team), warnings: unknownMemberWarnings(unknown) }
}

const unknownMemberWarnings = (names: readonly string[]): string[] => names.length === 0
  ? []
  : [`The users ${listNames(names)} do not exist yet: they become members once they exist`]

declare module 'fastify' {
  interface FastifyInstance { teams: Teams }
}

/** `app.teams`: manages the teams. */
export default fp(async (app) => {
  app.decorate('teams', new Teams(app.settings, app.config.env.READONLY))
}, { name: 'teams', dependencies: ['config', 'settings'] })

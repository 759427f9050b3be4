import type { Snapshot } from '../../../db/store.ts'
import { pushTo } from '../../../protocol/grouping.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { Team } from '../../../schemas/teams.ts'
import type { User } from '../../../schemas/settings.ts'
import type { Principal } from './view.ts'

type Teams = Pick<Snapshot, 'teams' | 'users'>

/** Whether the groups of a user's last OpenID Connect login include one of the team's `claims`. */
export const isMemberByLogin = ({ claims = [] }: Team, { loginGroups = [] }: User): boolean =>
  claims.some((claim) => loginGroups.includes(claim))

/** Returns the usernames of a team's members: those added by an admin, and those whose logins make them members. */
export function teamMembers ({ users }: Pick<Snapshot, 'users'>, team: Team): string[] {
  const byLogin = team.claims === undefined || team.claims.length === 0
    ? []
    : [...users.values()].filter((user) => isMemberByLogin(team, user)).map(({ username }) => username)
  return [...new Set([...team.members ?? [], ...byLogin])]
}

interface Memberships { readonly users: Snapshot['users'], readonly teams: ReadonlyMap<string, readonly string[]> }

const memberships = new WeakMap<Snapshot['teams'], Memberships>()
const none: readonly string[] = []

/** Returns the names of each user's teams, by username. Computed once per change of users or teams. */
function membershipsOf (snapshot: Teams): Memberships['teams'] {
  const known = memberships.get(snapshot.teams)
  if (known?.users === snapshot.users) return known.teams
  const teams = new Map<string, string[]>()
  for (const team of snapshot.teams.values()) {
    for (const username of teamMembers(snapshot, team)) pushTo(teams, username, team.name)
  }
  memberships.set(snapshot.teams, { users: snapshot.users, teams })
  return teams
}

/** Returns the names of the teams whose rights a principal has: its user's teams, or the team that owns its key. */
export function teamsOf (
  snapshot: Teams, { username, team }: Pick<Principal, 'username' | 'team'>
): readonly string[] {
  if (team !== undefined) return snapshot.teams.has(team) ? [team] : none
  return username === undefined ? none : membershipsOf(snapshot).get(username) ?? none
}

/** Returns the text by which `sharedWithUsers` and the owner of a key refer to a team. */
export const teamReference = (name: string): string => `@${name}`

/**
 * Finds the team that owns a key, by the key's `owner`. An old username may begin with `@`: the owner is then that
 * user, not a team.
 * @returns undefined if the owner is not a team
 */
export function teamOfKeyOwner ({ teams, users }: Teams, owner: string | undefined): Team | undefined {
  return owner?.startsWith('@') === true && !users.has(owner) ? teams.get(owner.slice(1)) : undefined
}

const toSet = memoized((names: readonly string[]): ReadonlySet<string> => new Set(names))

/** Finds the entry of `sharedWithUsers` that includes a principal, as a username or a team reference. */
export function findSharedWithEntry (
  snapshot: Teams, principal: Pick<Principal, 'username' | 'team'>, shared: readonly string[] | undefined
): string | undefined {
  if (shared === undefined || shared.length === 0) return undefined
  const names = toSet(shared)
  const { username } = principal
  if (username !== undefined && !username.startsWith('@') && names.has(username)) return username
  const team = teamsOf(snapshot, principal).find((each) => names.has(teamReference(each)))
  return team && teamReference(team)
}

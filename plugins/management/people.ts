import type { Static } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import { gatewayClient } from '../../protocol/exchange.ts'
import type { UserOfServer as ServerUserSchema } from '../../schemas/users.ts'
import { errors, noSuchError } from '../base/errors/index.ts'
import type { Gateway } from '../gateway/index.ts'
import { defaultOwner, principalOfUser, storedUsernameOf } from '../identity/index.ts'
import { makeView, type Principal, type Settings, findSharedWithEntry } from '../settings/index.ts'
import { requireManagedServer } from './checks.ts'
import type { Groups, ShownGroup } from './groups/groups.ts'
import type { PresentedServer } from './servers/present.ts'
import type { Servers } from './servers/servers.ts'

/**
 * What a user sees: servers and groups as the API returns them to that user, and tools by their names at the servers.
 */
interface UserView {
  readonly servers: PresentedServer[]
  readonly groups: ShownGroup[]
  readonly tools: ReadonlyArray<{ readonly server: string, readonly name: string }>
}

type ServerUser = Static<typeof ServerUserSchema>

interface PeopleDeps {
  readonly settings: Pick<Settings, 'current'>
  readonly servers: Pick<Servers, 'list'>
  readonly groups: Pick<Groups, 'list'>
  readonly gateway: Pick<Gateway, 'surface'>
  /**
   * Returns, by username, the time of each user's last recorded call of a server, in ms since 1970; empty if no calls
   * are recorded.
   */
  readonly lastUses: (server: string) => Promise<ReadonlyMap<string, number>>
}

/** Determines the users of each server, and what each user sees. */
export class AccessOverview {
  readonly #deps: PeopleDeps

  constructor (deps: PeopleDeps) {
    this.#deps = deps
  }

  /**
   * Returns what a user sees now. Login URLs of servers are included only if the caller is that user.
   * @throws NoSuch; Forbidden for another user, existing or not, if the caller is not an admin
   */
  visibleToUser (caller: Principal, username: string): UserView {
    const { settings: { current }, servers, groups, gateway } = this.#deps
    const user = current.users.get(storedUsernameOf(current.users, username))
    const isSelf = user !== undefined && user.username === caller.username
    if (!isSelf && !caller.isAdmin) throw new errors.Forbidden('Only an admin may see what another user sees')
    if (!user) throw noSuchError('user', username)
    const principal = { ...principalOfUser(user, undefined), address: isSelf ? caller.address : undefined }
    const { list, targets } = gateway.surface(makeView(principal, { kind: 'global' }), gatewayClient).parts.tools
    return {
      servers: servers.list(principal).map(({ oauth, ...record }) => isSelf && oauth ? { ...record, oauth } : record),
      groups: groups.list(principal),
      tools: list.entries.flatMap(({ name, key }) => {
        const target = targets.get(name ?? key ?? '')
        return target && current.servers.has(target.provider) ? [{ server: target.provider, name: target.key }] : []
      })
    }
  }

  /**
   * Returns the users who may use a server that the caller manages: the owner, users and members of teams in
   * `sharedWithUsers`, and, if the server is public, all users. Admins, who may use every server, are listed only if
   * one of these applies to them. Callers who are not admins must not learn which users exist: they get all usernames
   * in `sharedWithUsers`, even of users that do not exist, but users who may use the server only because it is public
   * are listed only if they have used it.
   * @throws NoSuch, Forbidden
   */
  async usersOf (caller: Principal, name: string): Promise<ServerUser[]> {
    const { current } = this.#deps.settings
    const { config } = requireManagedServer(current, caller, name)
    const { owner = defaultOwner, sharedWithUsers = [], visibility } = config
    const uses = await this.#deps.lastUses(name)
    const named = caller.isAdmin ? [] : [owner, ...sharedWithUsers.filter((each) => !each.startsWith('@'))]
    const rows = new Map<string, ServerUser>(named.map((username) => [username, { username, via: 'shared' }]))
    for (const user of current.users.values()) {
      const { username, createdAt = '' } = user
      const principal = principalOfUser(user, undefined)
      const share = findSharedWithEntry(current, principal, sharedWithUsers)
      const reason = share === username ? 'shared' : share ?? (visibility === 'public' ? 'public' : undefined)
      const via = username === owner ? 'owner' : reason
      if (via === undefined) continue
      const used = uses.get(username)
      // Calls before the account's creation were made by a former account of the same name.
      const isUsed = used !== undefined && !(used < Date.parse(createdAt))
      if (!caller.isAdmin && via === 'public' && !isUsed) continue
      rows.set(username, { username, via, ...(isUsed && { lastUsedAt: new Date(used).toISOString() }) })
    }
    return [...rows.values()]
  }
}

declare module 'fastify' {
  interface FastifyInstance { people: AccessOverview }
}

/** Decorates the app with `people`, which determines the users of each server, and what each user sees. */
export default fp(async (app) => {
  const { activities, gateway, groups, servers, settings } = app
  const lastUses: PeopleDeps['lastUses'] = async (server) => await activities.lastUseByUser(server)
  app.decorate('people', new AccessOverview({ settings, servers, groups, gateway, lastUses }))
}, { name: 'people', dependencies: ['settings', 'servers', 'groups', 'gateway', 'activities'] })

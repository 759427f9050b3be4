import { randomUUID } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import type { Change, Snapshot, NormalizedGroup } from '../../../db/store.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { GroupRecord, NewGroup } from '../../../schemas/group-api.ts'
import type { Group, GroupMember } from '../../../schemas/settings.ts'
import { checkReadOnlyMembers } from '../../base/body/index.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import {
  defaultOwner, storedUsernameOf, changesForKeyScopeRename, changesForKeyScopeRemoval
} from '../../identity/index.ts'
import { findGroupByName, makeView, type Principal, type Settings } from '../../settings/index.ts'
import { checkServerOrGroupQuota, checkGroupName, sameNameWarnings } from '../checks.ts'
import {
  compactMember, type MemberConfig, assertVisibleMember, updatedMembers, parseGroupMembers, unlistedItemWarnings,
  visibleMembers, withDefaultSelectors, withOwnItemNames
} from './members.ts'

/** The members of a request body for a new or changed group. */
type GroupInput = Partial<Static<typeof NewGroup>>

/** A group in a response of the API. `servers` contains names, or objects for members with selectors or an alias. */
export type ShownGroup = Static<typeof GroupRecord>

/** A group after a change, with warnings about probable mistakes. */
interface ChangedGroup { data: ShownGroup, warnings: string[] }

/** Max number of warnings in one response. */
const maxWarnings = 20

/** Manages the groups for the management API. Callers name a group by its id or its name. */
export class Groups {
  readonly #settings: Settings
  readonly #gateway: Pick<Gateway, 'catalogues'>

  constructor (settings: Settings, gateway: Pick<Gateway, 'catalogues'>) {
    this.#settings = settings
    this.#gateway = gateway
  }

  /** Returns the groups that the principal may see, with their members as plain names. */
  list (principal: Principal): ShownGroup[] {
    const snapshot = this.#settings.current
    return [...snapshot.groups.values()]
      .filter((group) => isVisible(snapshot, principal, group))
      .map((group) => ({
        ...toShownGroup(snapshot, principal, group),
        servers: visibleMembers(snapshot, principal, group).map(({ name }) => name)
      }))
  }

  /** Returns the groups that the principal may see, with the selectors and aliases of their members, as `get` does. */
  listWithSelectors (principal: Principal): ShownGroup[] {
    const snapshot = this.#settings.current
    return [...snapshot.groups.values()]
      .filter((group) => isVisible(snapshot, principal, group))
      .map((group) => toShownGroup(snapshot, principal, group))
  }

  /**
   * Returns a group, with the members that the principal may see.
   * @throws NoSuch if it does not exist, or the principal may not see it
   */
  get (principal: Principal, idOrName: string): ShownGroup {
    const snapshot = this.#settings.current
    return toShownGroup(snapshot, principal, find(snapshot, principal, idOrName))
  }

  /** Adds a group, owned by the principal unless an admin names another user. @throws InvalidInput, ShareUsed */
  async create (principal: Principal, input: GroupInput & { name: string }): Promise<ChangedGroup> {
    const id = randomUUID()
    const snapshot = await this.#settings.change((base) => {
      const group: Group = {
        id,
        name: input.name,
        description: input.description,
        servers: parseGroupMembers(base, principal, this.#convertItemNames(principal, input.servers ?? [])),
        owner: wantedOwner(base, principal, input) ?? newGroupOwner(base, principal)
      }
      checkGroupName(base, principal, group)
      checkServerOrGroupQuota(base, principal, 'group')
      return [{ entity: 'groups', key: id, value: group }]
    }, principal)
    const warnings = [...sameNameWarnings(snapshot, input.name, 'group'), ...this.#unlistedWarnings(principal, id)]
    return { data: this.get(principal, id), warnings }
  }

  /**
   * Changes the members that `input` contains. A new name also replaces the former one in bearer keys.
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async update (principal: Principal, idOrName: string, input: GroupInput): Promise<ChangedGroup> {
    let id = ''
    const snapshot = await this.#settings.change((base) => {
      const { members: stored, ...rest } = managedGroup(base, principal, idOrName)
      id = rest.id
      checkReadOnlyMembers(input, rest, ['id'])
      const group: Group = {
        ...rest,
        name: input.name ?? rest.name,
        description: input.description ?? rest.description,
        servers: input.servers
          ? updatedMembers(base, principal, stored, this.#convertItemNames(principal, input.servers))
          : [...stored],
        owner: wantedOwner(base, principal, input, rest.owner) ?? rest.owner ?? defaultOwner
      }
      if (group.name === rest.name) return [{ entity: 'groups', key: rest.id, value: group }]
      checkGroupName(base, principal, group)
      return [
        { entity: 'groups', key: rest.id, value: group },
        ...changesForKeyScopeRename(base, 'allowedGroups', rest.name, group.name)
      ]
    }, principal)
    const data = this.get(principal, id)
    return {
      data,
      warnings: [
        ...sameNameWarnings(snapshot, data.name, 'group'),
        ...input.servers ? this.#unlistedWarnings(principal, id) : []
      ]
    }
  }

  /** Returns the members of a group that the principal may see, with all selectors. @throws NoSuch */
  memberConfigs (principal: Principal, idOrName: string): MemberConfig[] {
    const snapshot = this.#settings.current
    return visibleMembers(snapshot, principal, find(snapshot, principal, idOrName)).map(withDefaultSelectors)
  }

  /** Adds one server with all its items. An existing member stays unchanged. @throws NoSuch, Forbidden, InvalidInput */
  async addServer (principal: Principal, idOrName: string, name: string): Promise<ShownGroup> {
    return await this.#changeMembers(principal, idOrName, (base, stored) => {
      const added = parseGroupMembers(base, principal, [name])
      return stored.some((member) => member.name === name) ? stored : [...stored, ...added]
    })
  }

  /** Removes a member. @throws NoSuch if it is not a member, or one that the principal may not see; Forbidden */
  async removeServer (principal: Principal, idOrName: string, name: string): Promise<ShownGroup> {
    return await this.#changeMembers(principal, idOrName, (base, stored) => {
      assertVisibleMember(base, principal, stored, name)
      return stored.filter((member) => member.name !== name)
    })
  }

  /** Replaces the tool selector of a member. @throws the errors of `removeServer` */
  async selectTools (
    principal: Principal, idOrName: string, name: string, tools: 'all' | string[]
  ): Promise<ChangedGroup> {
    const data = await this.#changeMembers(principal, idOrName, (base, stored) => {
      assertVisibleMember(base, principal, stored, name)
      return stored.map((member) =>
        member.name === name ? this.#convertMember(principal, { ...member, tools }) : member)
    })
    return {
      data,
      warnings: unlistedItemWarnings(
        this.#convertMember(principal, { name, tools }), this.#cataloguesOf(principal, name)
      )
    }
  }

  /** Like `get`, for a group that the principal may change. @throws NoSuch, Forbidden */
  getManaged (principal: Principal, idOrName: string): ShownGroup {
    const snapshot = this.#settings.current
    return toShownGroup(snapshot, principal, managedGroup(snapshot, principal, idOrName))
  }

  /**
   * Checks that the principal may change a group.
   * @param member a server that must be in it
   * @throws NoSuch, Forbidden
   */
  assertCanManage (principal: Principal, idOrName: string, member?: string): void {
    const snapshot = this.#settings.current
    const { members } = managedGroup(snapshot, principal, idOrName)
    if (member !== undefined) assertVisibleMember(snapshot, principal, members, member)
  }

  /** Removes a group, also from keys that are limited to it. @throws NoSuch, Forbidden */
  async remove (principal: Principal, idOrName: string): Promise<void> {
    await this.#settings.change((base) => {
      const { id, name } = managedGroup(base, principal, idOrName)
      return [
        { entity: 'groups', key: id, value: undefined }, ...changesForKeyScopeRemoval(base, 'allowedGroups', [id, name])
      ]
    }, principal)
  }

  /** Applies `withOwnItemNames` to the sent members. */
  #convertItemNames (principal: Principal, servers: Array<string | GroupMember>): Array<string | GroupMember> {
    return servers.map((each) => typeof each === 'string' ? each : this.#convertMember(principal, each))
  }

  #convertMember (principal: Principal, member: GroupMember): GroupMember {
    const separator = this.#settings.current.system.nameSeparator ?? '-'
    return withOwnItemNames(member, this.#cataloguesOf(principal, member.name), separator)
  }

  /** Returns the catalogues of a server; for principals that are not admins, without what policies hide from them. */
  #cataloguesOf (principal: Principal, server: string): readonly Catalogue[] {
    return this.#gateway.catalogues(server, principal.isAdmin ? undefined : makeView(principal, { kind: 'global' }))
  }

  /** Returns the warnings of `unlistedItemWarnings` about all members of a group that the principal may see. */
  #unlistedWarnings (principal: Principal, id: string): string[] {
    const snapshot = this.#settings.current
    return visibleMembers(snapshot, principal, find(snapshot, principal, id))
      .flatMap((member) => unlistedItemWarnings(member, this.#cataloguesOf(principal, member.name)))
      .slice(0, maxWarnings)
  }

  /** Replaces the members of a group by the result of `work`. If that is the stored array, nothing is changed. */
  async #changeMembers (
    principal: Principal,
    idOrName: string,
    work: (base: Snapshot, stored: readonly GroupMember[]) => readonly GroupMember[]
  ): Promise<ShownGroup> {
    let id = ''
    await this.#settings.change((base) => {
      const { members: stored, ...rest } = managedGroup(base, principal, idOrName)
      id = rest.id
      const next = work(base, stored)
      return next === stored ? [] : [{ entity: 'groups', key: id, value: { ...rest, servers: [...next] } }]
    }, principal)
    return this.get(principal, id)
  }
}

/** Returns the changes that remove a server from all groups. */
export function groupChangesForServerRemoval ({ groups }: Snapshot, server: string): Change[] {
  return [...groups.values()].flatMap(({ members, ...rest }): Change[] => members.some(({ name }) => name === server)
    ? [{ entity: 'groups', key: rest.id, value: { ...rest, servers: members.filter(({ name }) => name !== server) } }]
    : [])
}

/** Returns the owner of a new group: the principal's user, or the default owner if the principal is no stored user. */
const newGroupOwner = ({ users }: Snapshot, { username }: Principal): string =>
  username !== undefined && users.has(username) ? username : defaultOwner

/**
 * Returns the owner that an admin has sent; undefined if none was sent, or the caller is not an admin.
 * @param before the current owner, which may be sent even if it is no stored user
 * @throws InvalidInput for an unknown owner: a user created later with that name would own the group
 */
function wantedOwner (
  { users }: Snapshot, { isAdmin }: Principal, { owner }: GroupInput, before?: string
): string | undefined {
  if (!isAdmin || owner === undefined) return undefined
  const name = storedUsernameOf(users, owner)
  if (name === defaultOwner || name === before || users.has(name)) return name
  throw new errors.InvalidInput(`"owner": there is no user named ${JSON.stringify(owner)}`)
}

const mayManage = (principal: Principal, group: NormalizedGroup): boolean =>
  principal.isAdmin || (principal.username !== undefined && group.owner === principal.username)

const isVisible = (snapshot: Snapshot, principal: Principal, group: NormalizedGroup): boolean =>
  mayManage(principal, group) || visibleMembers(snapshot, principal, group).length > 0

/** Returns a group. @throws NoSuch if it does not exist, or the principal may not see it */
function find (snapshot: Snapshot, principal: Principal, idOrName: string): NormalizedGroup {
  const group = snapshot.groups.get(idOrName) ?? findGroupByName(snapshot, idOrName)
  if (!group || !isVisible(snapshot, principal, group)) throw noSuchError('group', idOrName)
  return group
}

/** Returns a group. @throws NoSuch as `find`; Forbidden if the principal may not change it */
function managedGroup (snapshot: Snapshot, principal: Principal, idOrName: string): NormalizedGroup {
  const group = find(snapshot, principal, idOrName)
  if (!mayManage(principal, group)) throw new errors.Forbidden('Only its owner or an admin may change this group')
  return group
}

function toShownGroup (snapshot: Snapshot, principal: Principal, group: NormalizedGroup): ShownGroup {
  const { members: _, owner = defaultOwner, ...rest } = group
  return { ...rest, servers: visibleMembers(snapshot, principal, group).map(compactMember), owner }
}

declare module 'fastify' {
  interface FastifyInstance { groups: Groups }
}

/** Decorates the app with `groups`, which manages the groups. */
export default fp(async (app) => {
  app.decorate('groups', new Groups(app.settings, app.gateway))
}, { name: 'groups', dependencies: ['settings', 'gateway'] })

import { randomUUID } from 'node:crypto'
import type { Change, Snapshot, StoredGroup } from '../../db/store.ts'
import type { Group, GroupMember } from '../../schemas/settings.ts'
import { aliasProblem, newNameProblem } from '../../schemas/names.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { canSee, groupNamed, takesPlace } from '../access/visibility.ts'
import { withNewName, withoutNames } from '../keys/scope.ts'
import { limits } from '../limits/index.ts'
import type { Settings } from '../settings/settings.ts'

/** What a caller says of a group. */
export interface GroupInput { name?: string, description?: string, servers?: Array<string | GroupMember> }

/** A group as it is answered. `warning` tells of something to know about it. */
export interface ShownGroup { id: string, name: string, description?: string, servers: Array<string | GroupMember>, owner?: string }

/** A member with all its selectors. */
export type MemberConfig = GroupMember & Required<Pick<GroupMember, 'tools' | 'prompts' | 'resources'>>

/** The groups, as the management API reads and writes them. Every method takes an id or a name. */
export class Groups {
  readonly #settings: Settings

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Members are answered as names here. */
  list (principal: Principal): ShownGroup[] {
    const snapshot = this.#settings.current
    return [...snapshot.groups.values()]
      .filter((group) => isVisible(snapshot, principal, group))
      .map((group) => ({
        ...shown(snapshot, principal, group),
        servers: visibleMembers(snapshot, principal, group).map(({ name }) => name)
      }))
  }

  /** As `get` answers each. */
  all (principal: Principal): ShownGroup[] {
    const snapshot = this.#settings.current
    return [...snapshot.groups.values()]
      .filter((group) => isVisible(snapshot, principal, group))
      .map((group) => shown(snapshot, principal, group))
  }

  get (principal: Principal, idOrName: string): ShownGroup {
    const snapshot = this.#settings.current
    return shown(snapshot, principal, find(snapshot, principal, idOrName))
  }

  /** @returns the group, and a warning when it takes a server's place on the routes */
  async create (principal: Principal, input: GroupInput & { name: string }): Promise<{ group: ShownGroup; warning?: string }> {
    const id = randomUUID()
    const snapshot = await this.#settings.change((base) => {
      const group: Group = {
        id,
        name: input.name,
        description: input.description,
        servers: members(base, principal, input.servers ?? []),
        owner: ownerOf(base, principal)
      }
      checkName(base, principal, group)
      if (
        !principal.isAdmin &&
        [...base.groups.values()].filter(({ owner }) => owner === principal.username).length >= limits.groupsPerUser
      ) {
        throw new errors.LimitReached(`You have ${limits.groupsPerUser} groups already: remove one first`)
      }
      return [{ entity: 'groups', key: id, value: group }]
    }, principal)
    return { group: this.get(principal, id), warning: sharesName(snapshot, input.name) }
  }

  async update (principal: Principal, idOrName: string, input: GroupInput): Promise<{ group: ShownGroup; warning?: string }> {
    let id = ''
    const snapshot = await this.#settings.change((base) => {
      const { members: stored, ...rest } = managed(base, principal, idOrName)
      id = rest.id
      const group: Group = {
        ...rest,
        name: input.name ?? rest.name,
        description: input.description ?? rest.description,
        servers: input.servers ? withHidden(base, principal, stored, members(base, principal, input.servers, stored)) : [...stored]
      }
      if (group.name === rest.name) return [{ entity: 'groups', key: rest.id, value: group }]
      checkName(base, principal, group)
      return [{ entity: 'groups', key: rest.id, value: group }, ...withNewName(base, 'allowedGroups', rest.name, group.name)]
    }, principal)
    const group = this.get(principal, id)
    return { group, warning: sharesName(snapshot, group.name) }
  }

  /** The members with their selectors, all of them said. */
  memberConfigs (principal: Principal, idOrName: string): MemberConfig[] {
    const snapshot = this.#settings.current
    return visibleMembers(snapshot, principal, find(snapshot, principal, idOrName)).map(full)
  }

  /** Adds one server, whole. One that is there already stays as it is. */
  async addServer (principal: Principal, idOrName: string, name: string): Promise<ShownGroup> {
    return await this.#changeMembers(principal, idOrName, (base, stored) => {
      const added = members(base, principal, [name])
      return stored.some((member) => member.name === name) ? stored : [...stored, ...added]
    })
  }

  /** @throws NoSuch when it is no member, or one that the principal may not see */
  async removeServer (principal: Principal, idOrName: string, name: string): Promise<ShownGroup> {
    return await this.#changeMembers(principal, idOrName, (base, stored) => {
      mustBeMember(base, principal, stored, name)
      return stored.filter((member) => member.name !== name)
    })
  }

  /** Chooses the tools of one member. @throws NoSuch as `removeServer` */
  async selectTools (principal: Principal, idOrName: string, name: string, tools: 'all' | string[]): Promise<ShownGroup> {
    return await this.#changeMembers(principal, idOrName, (base, stored) => {
      mustBeMember(base, principal, stored, name)
      return stored.map((member) => (member.name === name ? { ...member, tools } : member))
    })
  }

  /** @param member a server that must be in it @throws NoSuch, Forbidden */
  mustManage (principal: Principal, idOrName: string, member?: string): void {
    const snapshot = this.#settings.current
    const { members } = managed(snapshot, principal, idOrName)
    if (member !== undefined) mustBeMember(snapshot, principal, members, member)
  }

  async remove (principal: Principal, idOrName: string): Promise<void> {
    await this.#settings.change((base) => {
      const { id, name } = managed(base, principal, idOrName)
      return [{ entity: 'groups', key: id, value: undefined }, ...withoutNames(base, 'allowedGroups', [id, name])]
    }, principal)
  }

  async #changeMembers (
    principal: Principal,
    idOrName: string,
    work: (base: Snapshot, stored: readonly GroupMember[]) => readonly GroupMember[]
  ): Promise<ShownGroup> {
    let id = ''
    await this.#settings.change((base) => {
      const { members: stored, ...rest } = managed(base, principal, idOrName)
      id = rest.id
      const next = work(base, stored)
      return next === stored ? [] : [{ entity: 'groups', key: id, value: { ...rest, servers: [...next] } }]
    }, principal)
    return this.get(principal, id)
  }
}

/** What becomes of groups when a server is removed. */
export function withoutMember ({ groups }: Snapshot, server: string): Change[] {
  return [...groups.values()].flatMap(({ members, ...rest }): Change[] => members.some(({ name }) => name === server)
    ? [{ entity: 'groups', key: rest.id, value: { ...rest, servers: members.filter(({ name }) => name !== server) } }]
    : [])
}

const ownerOf = ({ users }: Snapshot, { username }: Principal): string => username !== undefined && users.has(username) ? username : 'admin'

const isOwn = (principal: Principal, group: StoredGroup): boolean =>
  principal.isAdmin || (principal.username !== undefined && group.owner === principal.username)

/** The members whose servers a principal may see; an admin also sees those that are configured no more. */
function visibleMembers (snapshot: Snapshot, principal: Principal, group: StoredGroup): GroupMember[] {
  return group.members.filter(({ name }) => {
    const server = snapshot.servers.get(name)
    return principal.isAdmin || (server !== undefined && canSee(snapshot, principal, server, 'public'))
  })
}

const isVisible = (snapshot: Snapshot, principal: Principal, group: StoredGroup): boolean =>
  isOwn(principal, group) || visibleMembers(snapshot, principal, group).length > 0

/** @throws NoSuch, also for what the principal may not see */
function find (snapshot: Snapshot, principal: Principal, idOrName: string): StoredGroup {
  const group = snapshot.groups.get(idOrName) ?? groupNamed(snapshot, idOrName)
  if (!group || !isVisible(snapshot, principal, group)) throw new errors.NoSuch('group')
  return group
}

function managed (snapshot: Snapshot, principal: Principal, idOrName: string): StoredGroup {
  const group = find(snapshot, principal, idOrName)
  if (!isOwn(principal, group)) throw new errors.Forbidden('Only its owner or an admin may change this group')
  return group
}

function shown (snapshot: Snapshot, principal: Principal, group: StoredGroup): ShownGroup {
  const { members: _, ...rest } = group
  return { ...rest, servers: visibleMembers(snapshot, principal, group).map(compact) }
}

const full = ({ name, tools = 'all', prompts = 'all', resources = 'all', alias }: GroupMember): MemberConfig => ({
  name,
  tools,
  prompts,
  resources,
  ...(alias === undefined ? {} : { alias })
})

/** A member as its name, where it says no more than that. */
function compact (member: GroupMember): string | GroupMember {
  const config = full(member)
  return config.tools === 'all' && config.prompts === 'all' && config.resources === 'all' && config.alias === undefined
    ? config.name
    : config
}

/** @throws NoSuch */
function mustBeMember (snapshot: Snapshot, principal: Principal, stored: readonly GroupMember[], name: string): void {
  const server = snapshot.servers.get(name)
  if (!stored.some((member) => member.name === name) || !(principal.isAdmin || (server && canSee(snapshot, principal, server, 'public')))) {
    throw new errors.NoSuch('server in this group')
  }
}

/** New members, with those in their old places that the principal does not see, and so could not send back. */
function withHidden (snapshot: Snapshot, principal: Principal, stored: readonly GroupMember[], sent: readonly GroupMember[]): GroupMember[] {
  const next = [...sent]
  if (principal.isAdmin) return next
  stored.forEach((member, at) => {
    const server = snapshot.servers.get(member.name)
    if (!server || !canSee(snapshot, principal, server, 'public')) next.splice(at, 0, member)
  })
  return next
}

/** @throws InvalidInput for a server that is not there (for this principal), or twice, and for an alias that is no name */
function members (
  snapshot: Snapshot,
  principal: Principal,
  input: Array<string | GroupMember>,
  stored: readonly GroupMember[] = []
): GroupMember[] {
  const seen = new Set<string>()
  return input.map((each) => {
    const member = typeof each === 'string' ? { name: each } : each
    const server = snapshot.servers.get(member.name)
    // An admin is shown members whose server is gone from the file, and may send them back.
    const former = stored.find(({ name }) => name === member.name)
    if (!(principal.isAdmin && former) && (!server || !canSee(snapshot, principal, server, 'public'))) {
      throw new errors.InvalidInput(`"servers": there is no server named ${JSON.stringify(member.name)}`)
    }
    if (seen.has(member.name)) throw new errors.InvalidInput(`"servers": ${JSON.stringify(member.name)} stands there twice`)
    seen.add(member.name)
    const problem = member.alias === undefined || member.alias === former?.alias ? undefined : aliasProblem(member.alias)
    if (problem !== undefined) throw new errors.InvalidInput(`"servers": the alias of ${JSON.stringify(member.name)}: ${problem}`)
    return member
  })
}

function checkName (snapshot: Snapshot, principal: Principal, { id, name }: Group): void {
  const problem = newNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"name": ${problem}`)
  const other = groupNamed(snapshot, name) ?? snapshot.groups.get(name)
  if (other && other.id !== id) throw new errors.InvalidInput(`There is a group named ${JSON.stringify(name)} already`)
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(name)) {
    throw new errors.InvalidInput('"name" must not look like an id')
  }
  if (snapshot.servers.has(name) && !principal.isAdmin) {
    throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)}; only an admin may give a group its name`)
  }
}

/** What to know of a group whose name a server has, too; undefined: none has. */
function sharesName (snapshot: Snapshot, name: string): string | undefined {
  const [group, server] = [groupNamed(snapshot, name), snapshot.servers.get(name)]
  if (!group || !server) return undefined
  return `There is a server named ${JSON.stringify(name)} too: routes with this name lead to the ${takesPlace(snapshot, group, server) ? 'group' : "server, since the group is no admin's"}`
}

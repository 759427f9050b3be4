import { randomUUID } from 'node:crypto'
import type { Snapshot, StoredGroup } from '../../db/store.ts'
import type { Group, GroupMember } from '../../schemas/settings.ts'
import { nameProblem } from '../../schemas/names.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../gateway/view.ts'
import { canSee, groupNamed } from '../gateway/visibility.ts'
import type { Settings } from '../settings/settings.ts'

/** What a caller says of a group. */
export interface GroupInput { name?: string, description?: string, servers?: Array<string | GroupMember> }

/** A group as it is answered. `warning` tells of something to know about it. */
export interface ShownGroup { id: string, name: string, description?: string, servers: Array<string | GroupMember>, owner?: string }

/** The groups, as the management API reads and writes them. Every method takes an id or a name. */
export class Groups {
  readonly #settings: Settings

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Members are answered as names here. */
  list (principal: Principal): ShownGroup[] {
    const snapshot = this.#settings.current
    return [...snapshot.groups.values()].filter((group) => isVisible(snapshot, principal, group))
      .map((group) => ({ ...shown(snapshot, principal, group), servers: visibleMembers(snapshot, principal, group).map(({ name }) => name) }))
  }

  get (principal: Principal, idOrName: string): ShownGroup {
    const snapshot = this.#settings.current
    return shown(snapshot, principal, find(snapshot, principal, idOrName))
  }

  /** @returns the group, and a warning when it takes a server's place on the routes */
  async create (principal: Principal, input: GroupInput & { name: string }): Promise<{ group: ShownGroup, warning?: string }> {
    const id = randomUUID()
    const snapshot = await this.#settings.change((base) => {
      const group: Group = { id, name: input.name, description: input.description, servers: members(base, principal, input.servers ?? []), owner: ownerOf(base, principal) }
      checkName(base, principal, group)
      return [{ entity: 'groups', key: id, value: group }]
    })
    return { group: this.get(principal, id), warning: shadowed(snapshot, input.name) }
  }

  async update (principal: Principal, idOrName: string, input: GroupInput): Promise<{ group: ShownGroup, warning?: string }> {
    let id = ''
    const snapshot = await this.#settings.change((base) => {
      const { members: stored, ...rest } = managed(base, principal, idOrName)
      id = rest.id
      const group: Group = { ...rest, name: input.name ?? rest.name, description: input.description ?? rest.description, servers: input.servers ? members(base, principal, input.servers) : [...stored] }
      if (group.name !== rest.name) checkName(base, principal, group)
      return [{ entity: 'groups', key: rest.id, value: group }]
    })
    const group = this.get(principal, id)
    return { group, warning: shadowed(snapshot, group.name) }
  }

  /** @throws NoSuch, Forbidden */
  mustManage (principal: Principal, idOrName: string): void {
    managed(this.#settings.current, principal, idOrName)
  }

  async remove (principal: Principal, idOrName: string): Promise<void> {
    await this.#settings.change((base) => [{ entity: 'groups', key: managed(base, principal, idOrName).id, value: undefined }])
  }
}

const ownerOf = ({ users }: Snapshot, { username }: Principal): string => username !== undefined && users.has(username) ? username : 'admin'

const isOwn = (principal: Principal, group: StoredGroup): boolean => principal.isAdmin || (principal.username !== undefined && group.owner === principal.username)

/** The members whose servers a principal may see; an admin also sees those that are configured no more. */
function visibleMembers (snapshot: Snapshot, principal: Principal, group: StoredGroup): GroupMember[] {
  return group.members.filter(({ name }) => {
    const server = snapshot.servers.get(name)
    return principal.isAdmin || (server !== undefined && canSee(snapshot, principal, server, 'public'))
  })
}

const isVisible = (snapshot: Snapshot, principal: Principal, group: StoredGroup): boolean => isOwn(principal, group) || visibleMembers(snapshot, principal, group).length > 0

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

/** A member as its name, where it says no more than that. */
function compact (member: GroupMember): string | GroupMember {
  const { name, tools = 'all', prompts = 'all', resources = 'all', alias } = member
  return tools === 'all' && prompts === 'all' && resources === 'all' && alias === undefined ? name : { name, tools, prompts, resources, ...(alias === undefined ? {} : { alias }) }
}

/** @throws InvalidInput for a server that is not there (for this principal), or twice */
function members (snapshot: Snapshot, principal: Principal, input: Array<string | GroupMember>): GroupMember[] {
  const seen = new Set<string>()
  return input.map((each) => {
    const member = typeof each === 'string' ? { name: each } : each
    const server = snapshot.servers.get(member.name)
    if (!server || !canSee(snapshot, principal, server, 'public')) throw new errors.InvalidInput(`"servers": there is no server named ${JSON.stringify(member.name)}`)
    if (seen.has(member.name)) throw new errors.InvalidInput(`"servers": ${JSON.stringify(member.name)} stands there twice`)
    seen.add(member.name)
    return member
  })
}

function checkName (snapshot: Snapshot, principal: Principal, { id, name }: Group): void {
  const problem = nameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"name": ${problem}`)
  const other = groupNamed(snapshot, name) ?? snapshot.groups.get(name)
  if (other && other.id !== id) throw new errors.InvalidInput(`There is a group named ${JSON.stringify(name)} already`)
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(name)) throw new errors.InvalidInput('"name" must not look like an id')
  if (snapshot.servers.has(name) && !principal.isAdmin) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)}; only an admin may give a group its name`)
}

const shadowed = ({ servers }: Snapshot, name: string): string | undefined => servers.has(name) ? `There is a server named ${JSON.stringify(name)} too: routes with this name lead to the group` : undefined

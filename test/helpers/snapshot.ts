import type { Server, Snapshot, Store, NormalizedGroup } from '../../db/store.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { GroupMember, SystemConfig } from '../../schemas/settings.ts'

/** Settings without any entry. */
export const emptySnapshot: Snapshot = {
  version: 1,
  servers: new Map(),
  groups: new Map(),
  keys: new Map(),
  users: new Map(),
  prompts: new Map(),
  resources: new Map(),
  skills: new Map(),
  teams: new Map(),
  policies: new Map(),
  guards: new Map(),
  quotas: new Map(),
  system: {},
  problems: []
}

/** A store with settings that stay as they are. @param own what a test has otherwise */
export const fixedStore = (snapshot: Snapshot, own: Partial<Store> = {}): Store => ({
  load: async () => snapshot,
  commit: async () => snapshot,
  onChange: () => () => {},
  health: () => undefined,
  close: async () => {},
  ...own
})

export interface Given {
  servers?: Record<string, ServerConfig & { problem?: string }>
  groups?: Array<{ id: string; name: string; owner?: string; members: Array<string | GroupMember> }>
  admins?: string[]
  users?: string[]
  system?: SystemConfig
}

/** Settings with some entries, in short. */
export function snapshotOf ({ servers = {}, groups = [], admins = [], users = [], system = {} }: Given): Snapshot {
  return {
    ...emptySnapshot,
    servers: new Map(Object.entries(servers).map(([name, { problem, ...config }]): [string, Server] => [name, { name, config, problem }])),
    groups: new Map(
      groups.map(({ members, ...group }): [string, NormalizedGroup] => [
        group.id,
        { ...group, members: members.map((member) => (typeof member === 'string' ? { name: member } : member)) }
      ])
    ),
    users: new Map(
      [...admins.map((username) => ({ username, isAdmin: true })), ...users.map((username) => ({ username }))].map((user) => [
        user.username,
        user
      ])
    ),
    system
  }
}

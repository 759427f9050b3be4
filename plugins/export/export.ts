import { lockOf } from '../../db/document.ts'
import type { Server, Snapshot } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { canManage } from '../access/visibility.ts'
import type { Groups, ShownGroup } from '../groups/groups.ts'
import { maskConfig } from '../secrets/mask.ts'
import type { Settings } from '../settings/settings.ts'

type Json = Record<string, unknown>

/** What is written down as a settings file says it: another gateway can start with it. */
export interface Exported { mcpServers: Json, groups: ShownGroup[], systemConfig?: Json, users?: Json[], bearerKeys?: Json[] }

/** The settings as a file. */
export class Export {
  readonly #settings: Settings
  readonly #groups: Groups

  constructor (settings: Settings, groups: Groups) {
    this.#settings = settings
    this.#groups = groups
  }

  /**
   * @param secrets the real ones, and the hashes of passwords and tokens, instead of masks; for admins
   * @throws Forbidden, SecretsLocked
   */
  get (principal: Principal, secrets: boolean): Exported {
    if (secrets && !principal.isAdmin) throw new errors.Forbidden('Only an admin may export secrets')
    const snapshot = this.#settings.current
    if (secrets) checkLocks(snapshot)
    const mask = (value: Readonly<Json>): Json => secrets ? { ...value } : maskConfig(value)
    const mcpServers = Object.fromEntries(managed(snapshot, principal).map(({ name, config }) => [name, mask(config)]))
    const groups = this.#groups.all(principal).filter(({ owner }) => principal.isAdmin || owner === principal.username)
    if (!principal.isAdmin) return { mcpServers, groups }
    return {
      mcpServers,
      groups,
      systemConfig: mask(snapshot.system),
      users: [...snapshot.users.values()].map(({ password, ...user }) => secrets ? { ...user, password } : user),
      bearerKeys: [...snapshot.keys.values()].map(({ token, tokenHash, ...key }) => secrets ? { ...key, token, tokenHash } : key)
    }
  }
}

/** What cannot be opened has masks where its secrets should be: a backup must not look whole. @throws SecretsLocked */
function checkLocks ({ servers, system }: Snapshot): void {
  const locked = [...servers.values()].flatMap(({ name, config }) => lockOf(config) === undefined ? [] : [JSON.stringify(name)])
  if (lockOf(system) !== undefined) locked.push('"systemConfig"')
  if (locked.length > 0) throw new errors.SecretsLocked(`${locked.slice(0, 20).join(', ')}${locked.length > 20 ? ' …' : ''}`)
}

const managed = (snapshot: Snapshot, principal: Principal): Server[] =>
  [...snapshot.servers.values()].filter((server) => canManage(principal, server))

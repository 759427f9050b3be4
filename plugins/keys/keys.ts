import { randomBytes, randomUUID } from 'node:crypto'
import type { Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../gateway/view.ts'
import { maskToken, sha256 } from '../secrets/hash.ts'
import type { Settings } from '../settings/settings.ts'

/** What a caller says of a key to be made. */
export type NewKey = Partial<Pick<BearerKey, 'kind' | 'owner' | 'accessType' | 'allowedGroups' | 'allowedServers' | 'enabled'>> & { name: string }

/** A key as it may be shown: its token masked, or plain, once. */
export type ShownKey = Required<Pick<BearerKey, 'id' | 'name' | 'token' | 'kind' | 'accessType' | 'allowedGroups' | 'allowedServers' | 'enabled'>> & Pick<BearerKey, 'owner' | 'createdAt'>

/** Bearer keys, found by the token that a caller presents. */
export class Keys {
  readonly #settings: Settings
  #byHash = new Map<string, BearerKey>()
  #of: Snapshot['keys'] | undefined

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** The enabled key with this token. One hash and one look-up, however many keys there are. */
  find (token: string): BearerKey | undefined {
    const { keys } = this.#settings.current
    if (keys !== this.#of) {
      this.#of = keys
      this.#byHash = new Map([...keys.values()].flatMap((key) => {
        const hash = key.tokenHash ?? (key.token === undefined ? undefined : sha256(key.token))
        return hash === undefined || key.enabled === false ? [] : [[hash, key]]
      }))
    }
    return this.#byHash.get(sha256(token))
  }

  /** The one key of old settings becomes a key like any other, once (DECISIONS §4). */
  async migrate (): Promise<void> {
    if (!this.#settings.current.system.routing?.bearerAuthKey) return
    await this.#settings.change(({ system }) => {
      const { bearerAuthKey, ...routing } = system.routing ?? {}
      if (!bearerAuthKey) return []
      const key: BearerKey = { id: randomUUID(), name: 'default', tokenHash: sha256(bearerAuthKey), tokenMask: maskToken(bearerAuthKey), kind: 'system', accessType: 'all', allowedGroups: [], allowedServers: [], enabled: true, createdAt: new Date().toISOString() }
      return [{ entity: 'bearerKeys', key: key.id, value: key }, { entity: 'systemConfig', value: { ...system, routing } }]
    })
  }

  /** The keys that a principal may manage: an admin all, a user its own. */
  list (principal: Principal): ShownKey[] {
    return [...this.#settings.current.keys.values()].filter((key) => isOwn(principal, key)).map((key) => shown(key))
  }

  /** Makes a key. A user's is always its own and for all that it sees. @returns the key with its token, never to be seen again */
  async create (principal: Principal, { name, ...asked }: NewKey): Promise<ShownKey> {
    const token = `thk_${randomBytes(32).toString('hex')}`
    const base = { id: randomUUID(), name, tokenHash: sha256(token), tokenMask: maskToken(token), createdAt: new Date().toISOString() }
    await this.#settings.change(({ users }) => {
      const key: BearerKey = principal.isAdmin
        ? { ...base, kind: asked.kind ?? 'system', owner: asked.owner, accessType: asked.accessType ?? 'all', allowedGroups: asked.allowedGroups ?? [], allowedServers: asked.allowedServers ?? [], enabled: asked.enabled ?? true }
        : { ...base, kind: 'user', owner: principal.username, accessType: 'all', allowedGroups: [], allowedServers: [], enabled: asked.enabled ?? true }
      if (key.kind === 'user' && (key.owner === undefined || !users.has(key.owner))) throw new errors.InvalidInput('"owner" must be the name of a user: a key of kind "user" sees what its owner sees')
      return [{ entity: 'bearerKeys', key: key.id, value: key }]
    })
    const stored = this.#settings.current.keys.get(base.id)
    if (!stored) throw new errors.NoSuch('bearer key')
    return { ...shown(stored), token }
  }

  /** @throws NoSuch, Forbidden for somebody else's */
  async remove (principal: Principal, id: string): Promise<void> {
    await this.#settings.change(({ keys }) => {
      const key = keys.get(id)
      if (!key) throw new errors.NoSuch('bearer key')
      if (!isOwn(principal, key)) throw new errors.Forbidden('This bearer key is somebody else\'s')
      return [{ entity: 'bearerKeys', key: id, value: undefined }]
    })
  }
}

const isOwn = (principal: Principal, key: BearerKey): boolean => principal.isAdmin || (key.kind === 'user' && key.owner === principal.username)

function shown ({ tokenHash: _, tokenMask, token, ...key }: BearerKey): ShownKey {
  return { ...key, kind: key.kind ?? 'system', accessType: key.accessType ?? 'all', allowedGroups: key.allowedGroups ?? [], allowedServers: key.allowedServers ?? [], enabled: key.enabled ?? true, token: tokenMask ?? maskToken(token ?? '') }
}

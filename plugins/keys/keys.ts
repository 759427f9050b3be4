import { randomBytes, randomUUID } from 'node:crypto'
import type { Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { limits } from '../limits/index.ts'
import { maskToken, sha256 } from '../secrets/hash.ts'
import type { Settings } from '../settings/settings.ts'
import { knownName } from '../users/username.ts'
import { changed, type KeyChange } from './change.ts'
import { withoutToken } from '../settings/hashed-key.ts'
import { Usage } from './usage.ts'

/** What a caller says of a key to be made. */
export type NewKey = Partial<Pick<BearerKey, 'kind' | 'owner' | 'accessType' | 'allowedGroups' | 'allowedServers' | 'enabled'>> & {
  name: string
}

/** A key as it may be shown: its token masked, or plain, once. */
export type ShownKey = Required<
  Pick<BearerKey, 'id' | 'name' | 'token' | 'kind' | 'accessType' | 'allowedGroups' | 'allowedServers' | 'enabled'>
> &
  Pick<BearerKey, 'owner' | 'createdAt' | 'lastUsedAt'>

/** Bearer keys, found by the token that a caller presents. */
export class Keys {
  readonly usage: Usage
  readonly #settings: Settings
  readonly #readonly: boolean
  #byHash = new Map<string, BearerKey>()
  #of: Snapshot['keys'] | undefined

  /** @param readonly whether nothing may be written that nobody asked for (READONLY) */
  constructor (settings: Settings, readonly: boolean) {
    this.#settings = settings
    this.#readonly = readonly
    this.usage = new Usage(settings)
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

  /** The one key of old settings becomes a key like any other, once: not again when it was deleted and comes back with an old file (DECISIONS §4). */
  async migrate (): Promise<void> {
    if (this.#readonly || !this.#settings.current.system.routing?.bearerAuthKey) return
    await this.#settings.change(({ system, keys }) => {
      const { bearerAuthKey, ...routing } = system.routing ?? {}
      if (!bearerAuthKey) return []
      const tokenHash = sha256(bearerAuthKey)
      const known = system.bearerAuthKeyMigrated === true || [...keys.values()].some((key) => withoutToken(key).tokenHash === tokenHash)
      const key: BearerKey = {
        id: randomUUID(),
        name: 'default',
        tokenHash,
        tokenMask: maskToken(bearerAuthKey),
        kind: 'system',
        accessType: 'all',
        allowedGroups: [],
        allowedServers: [],
        enabled: true,
        createdAt: new Date().toISOString()
      }
      return [
        ...(known ? [] : [{ entity: 'bearerKeys' as const, key: key.id, value: key }]),
        { entity: 'systemConfig', value: { ...system, routing, bearerAuthKeyMigrated: true } }
      ]
    })
  }

  /** The keys that a principal may manage: an admin all, a user its own. */
  list (principal: Principal): ShownKey[] {
    return [...this.#settings.current.keys.values()].filter((key) => isOwn(principal, key)).map((key) => this.#shown(key))
  }

  /**
   * Makes a key. A user's is always its own and for all that it sees.
   * @returns the key with its token, never to be seen again, and what to know about it
   * @throws InvalidInput, LimitReached
   */
  async create (principal: Principal, { name, ...asked }: NewKey): Promise<{ key: ShownKey, warning?: string }> {
    checkLabel(name)
    const token = `thk_${randomBytes(32).toString('hex')}`
    const base = { id: randomUUID(), name, tokenHash: sha256(token), tokenMask: maskToken(token), createdAt: new Date().toISOString() }
    const key: BearerKey = principal.isAdmin
      ? {
          ...base,
          kind: asked.kind ?? 'system',
          owner: asked.owner,
          accessType: asked.accessType ?? 'all',
          allowedGroups: asked.allowedGroups ?? [],
          allowedServers: asked.allowedServers ?? [],
          enabled: asked.enabled ?? true
        }
      : {
          ...base,
          kind: 'user',
          owner: principal.username,
          accessType: 'all',
          allowedGroups: [],
          allowedServers: [],
          enabled: asked.enabled ?? true
        }
    const snapshot = await this.#settings.change(({ users, keys }) => {
      if (key.kind === 'user' && key.owner === undefined) {
        throw new errors.InvalidInput('"owner" must be the name of a user: a key of kind "user" sees what its owner sees')
      }
      if (key.owner !== undefined) key.owner = knownName(users, key.owner)
      if (key.owner !== undefined && !users.has(key.owner)) {
        throw new errors.InvalidInput(`"owner": there is no user named ${JSON.stringify(key.owner)}`)
      }
      if (!principal.isAdmin && [...keys.values()].filter((other) => isOwn(principal, other)).length >= limits.keysPerUser) {
        throw new errors.LimitReached(`You have ${limits.keysPerUser} bearer keys already: remove one first`)
      }
      return [{ entity: 'bearerKeys', key: key.id, value: key }]
    }, principal)
    return { key: { ...this.#shown(key), token }, warning: unknownNames(snapshot, key) }
  }

  /**
   * Changes a key. A user may change the name and `enabled` of its own; nobody the kind and the owner: the token is in somebody's hands.
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async update (principal: Principal, id: string, change: KeyChange): Promise<{ key: ShownKey, warning?: string }> {
    if (change.name !== undefined) checkLabel(change.name)
    const snapshot = await this.#settings.change(
      (base) => [{ entity: 'bearerKeys', key: id, value: changed(withoutToken(managed(base, principal, id)), change, principal.isAdmin) }],
      principal
    )
    const key = managed(snapshot, principal, id)
    return { key: this.#shown(key), warning: unknownNames(snapshot, key) }
  }

  /** @throws NoSuch, Forbidden for somebody else's */
  mustManage (principal: Principal, id: string): void {
    managed(this.#settings.current, principal, id)
  }

  /** @throws NoSuch, Forbidden for somebody else's */
  async remove (principal: Principal, id: string): Promise<void> {
    await this.#settings.change(
      (snapshot) => [{ entity: 'bearerKeys', key: managed(snapshot, principal, id).id, value: undefined }],
      principal
    )
  }

  #shown (key: BearerKey): ShownKey {
    const { tokenHash: _, tokenMask = '...', ...rest } = withoutToken(key)
    return {
      ...rest,
      kind: key.kind ?? 'system',
      accessType: key.accessType ?? 'all',
      allowedGroups: key.allowedGroups ?? [],
      allowedServers: key.allowedServers ?? [],
      enabled: key.enabled ?? true,
      token: tokenMask,
      lastUsedAt: this.usage.of(key)
    }
  }
}

const isOwn = (principal: Principal, key: BearerKey): boolean =>
  principal.isAdmin || (key.kind === 'user' && key.owner === principal.username)

function managed ({ keys }: Snapshot, principal: Principal, id: string): BearerKey {
  const key = keys.get(id)
  if (!key) throw new errors.NoSuch('bearer key')
  if (!isOwn(principal, key)) throw new errors.Forbidden('This bearer key is somebody else\'s')
  return key
}

/** A label is shown to people: what they cannot see has no place in it. */
function checkLabel (name: string): void {
  if (/[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Zl}\p{Zp}]/u.test(name)) throw new errors.InvalidInput('"name" must not have control characters')
}

/** What a key names but is not there: harmless now, and open to it once somebody makes it. */
function unknownNames (
  { groups, servers }: Snapshot,
  { accessType = 'all', allowedGroups = [], allowedServers = [] }: BearerKey
): string | undefined {
  const named = new Set([...groups.values()].flatMap(({ id, name }) => [id, name]))
  const unknown = [
    ...(accessType === 'groups' || accessType === 'custom'
      ? allowedGroups.filter((name) => !named.has(name)).map((name) => `group ${JSON.stringify(name)}`)
      : []),
    ...(accessType === 'servers' || accessType === 'custom'
      ? allowedServers.filter((name) => !servers.has(name)).map((name) => `server ${JSON.stringify(name)}`)
      : [])
  ]
  return unknown.length === 0 ? undefined : `There is no ${unknown.join(', no ')} yet: the key opens each as soon as there is one`
}

import { randomBytes, randomUUID } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import { hasControlCharacters, reservedNameProblem } from '../../../schemas/names.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import {
  teamOfKeyOwner, type Principal, type Settings, responsibleUsersOf, withHashedToken
} from '../../settings/index.ts'
import { checkReadOnlyMembers } from '../../base/body/index.ts'
import { maskToken, sha256 } from '../../base/secrets/index.ts'
import { legacyKeyIgnoredWarning, convertLegacyKey, legacyKeyConvertedWarning } from './legacy-key.ts'
import {
  ownerAndCreatorOf, applyKeyChange, type KeyChange, keyCreatorOf, requestedKeyScope, fullUserScope
} from './key-input.ts'
import { isActiveKey, widensRights, keyInactivityReason, requiredAdminsOf } from './rights.ts'
import { keyExpiryOf, parseKeyExpiry } from './expiry.ts'
import { KeyUsage } from './usage.ts'
import { identityLimits } from '../limits.ts'

/** The members of a new key as the caller sends them. */
type KeyRequest =
  Partial<Pick<BearerKey, 'kind' | 'owner' | 'accessType' | 'allowedGroups' | 'allowedServers' | 'enabled'>> & {
    name: string
    /** A time in ISO 8601; null or undefined if the key never expires. */
    expiresAt?: string | null
  }

/** A key as the API returns it. `token` is masked, except in the response that creates the key. */
type ShownKey = Required<
  Pick<BearerKey, 'id' | 'name' | 'token' | 'kind' | 'accessType' | 'allowedGroups' | 'allowedServers' | 'enabled'>
> &
  Pick<BearerKey, 'owner' | 'createdBy' | 'expiresAt' | 'createdAt' | 'lastUsedAt'> &
  { /** The reason why the key is inactive now. */ inactive?: string }

/** Finds bearer keys by their tokens; lists, creates, changes and removes bearer keys. */
export class BearerKeys {
  readonly usage: KeyUsage
  readonly #settings: Settings
  readonly #readonly: boolean
  readonly #warn: (sentence: string) => void
  #byHash = new Map<string, BearerKey>()
  /** Recently found keys, by token: hashing the token for each request would take a large part of a call's time. */
  readonly #found = new Map<string, BearerKey>()
  /** The keys from which `#byHash` was built. */
  #indexed: Snapshot['keys'] | undefined

  /**
   * @param readonly whether READONLY is set; then the legacy key is not migrated
   * @param warn logs a warning for the operator
   */
  constructor (settings: Settings, readonly: boolean, warn: (sentence: string) => void) {
    this.#settings = settings
    this.#readonly = readonly
    this.#warn = warn
    this.usage = new KeyUsage(settings)
  }

  /** Returns the active key with this token, or undefined. Runs for each request with a bearer key. */
  find (token: string): BearerKey | undefined {
    const key = this.#findStored(token)
    return key && isActiveKey(key, this.#settings.current) ? key : undefined
  }

  /**
   * Returns the name of the key with this token and why the key is inactive; undefined if there is no key with this
   * token, or the key is active.
   */
  findInactive (token: string): { name: string, reason: string } | undefined {
    const key = this.#findStored(token)
    const reason = key && keyInactivityReason(key, this.#settings.current)
    return reason === undefined ? undefined : { name: key?.name ?? '', reason }
  }

  #findStored (token: string): BearerKey | undefined {
    const snapshot = this.#settings.current
    if (snapshot.keys !== this.#indexed) {
      this.#indexed = snapshot.keys
      this.#byHash = indexByHash(snapshot.keys)
      this.#found.clear()
    }
    let key = this.#found.get(token)
    if (!key && (key = this.#byHash.get(sha256(token)))) {
      if (this.#found.size >= identityLimits.keysAtHand) this.#found.clear()
      this.#found.set(token, key)
    }
    return key
  }

  /**
   * Replaces the single key of old settings (`routing.bearerAuthKey`) by a bearer key. If this has already happened
   * (`bearerAuthKeyMigrated`), it only removes the single key: an old file must not bring back a deleted key.
   */
  async migrateLegacyKey (): Promise<void> {
    if (this.#readonly || !this.#settings.current.system.routing?.bearerAuthKey) return
    let outcome = 'none' as 'none' | 'dropped' | 'migrated'
    await this.#settings.change(({ system, keys }) => {
      outcome = 'none'
      const { bearerAuthKey, ...routing } = system.routing ?? {}
      if (!bearerAuthKey) return []
      const key = convertLegacyKey(bearerAuthKey)
      const exists = [...keys.values()].some((other) => withHashedToken(other).tokenHash === key.tokenHash)
      const known = system.bearerAuthKeyMigrated === true || exists
      outcome = known ? 'dropped' : 'migrated'
      return [
        ...(known ? [] : [{ entity: 'bearerKeys' as const, key: key.id, value: key }]),
        { entity: 'systemConfig', value: { ...system, routing, bearerAuthKeyMigrated: true } }
      ]
    })
    if (outcome === 'migrated') this.#warn(legacyKeyConvertedWarning)
    if (outcome === 'dropped') this.#warn(legacyKeyIgnoredWarning)
  }

  /** The time at which the next key expires, in ms since the epoch; Infinity if no key expires. */
  get nextExpiry (): number {
    const times = [...this.#settings.current.keys.values()].map(keyExpiryOf).filter((time) => time > Date.now())
    return times.reduce((first, time) => Math.min(first, time), Infinity)
  }

  /** Returns the keys that a principal may manage: for an admin, all keys; for another user, the user's own keys. */
  list (principal: Principal): ShownKey[] {
    return [...this.#settings.current.keys.values()].filter((key) => canManage(principal, key)).map((key) =>
      this.#toShownKey(key))
  }

  /** Returns a key that the principal may manage. @throws NoSuch, Forbidden for another user's key */
  get (principal: Principal, id: string): ShownKey {
    return this.#toShownKey(requireManagedKey(this.#settings.current, principal, id))
  }

  /**
   * Creates a key. If neither a kind nor a scope is sent, it is a user key, for MCP; it belongs to the caller unless an
   * admin names another owner. A caller who is not an admin can create only user keys of their own. `createdBy` is a
   * user on whose rights the caller's credential depends.
   * @returns the key with its token, which is not shown again, and warnings, for example about names in the scope that
   *   do not exist yet
   * @throws InvalidInput; ShareUsed beyond `identityLimits.keysPerUser`; Forbidden, for example if a caller who is not
   *   an admin requests a team's key
   */
  async create (principal: Principal, { name, ...input }: KeyRequest): Promise<{ data: ShownKey, warnings: string[] }> {
    checkKeyName(name)
    if (!principal.isAdmin && input.owner?.startsWith('@') === true && input.owner !== principal.username) {
      throw new errors.Forbidden('Only admins can create keys of teams')
    }
    const token = `${ownCredentialPrefixes.key}${randomBytes(32).toString('hex')}`
    const base = {
      id: randomUUID(),
      name,
      tokenHash: sha256(token),
      tokenMask: maskToken(token),
      createdAt: new Date().toISOString(),
      ...(typeof input.expiresAt === 'string' && { expiresAt: parseKeyExpiry(input.expiresAt) })
    }
    const { enabled = true } = input
    const scope = principal.isAdmin ? requestedKeyScope(input) : fullUserScope
    const key: BearerKey = { ...base, ...scope, enabled }
    const snapshot = await this.#settings.change((base) => {
      Object.assign(key, ownerAndCreatorOf(base, principal, key.kind, principal.isAdmin ? input : {}))
      if (!principal.isAdmin &&
          [...base.keys.values()].filter((other) => canManage(principal, other)).length >= identityLimits.keysPerUser) {
        throw new errors.ShareUsed(`You already have ${identityLimits.keysPerUser} bearer keys: remove one first`)
      }
      return [{ entity: 'bearerKeys', key: key.id, value: key }]
    }, principal)
    const differs = (name: typeof scopeMembers[number]): boolean =>
      input[name] !== undefined && JSON.stringify(input[name]) !== JSON.stringify(key[name])
    const ignored = (principal.isAdmin ? [] : scopeMembers.filter(differs))
      .map((name) => `"${name}" is for admins only: your own keys give access to what you can see`)
    return { data: { ...this.#toShownKey(key), token }, warnings: [...ignored, ...keyWarningsOf(snapshot, key)] }
  }

  /**
   * Changes a key. Users may change `name` and `enabled` of their own keys; admins may change more, but not the kind or
   * the owner, since the token is already in use. If the change widens the key's rights, the account behind the caller
   * becomes the creator of the key (`createdBy`).
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async update (principal: Principal, id: string, change: KeyChange): Promise<{ data: ShownKey, warnings: string[] }> {
    if (change.name !== undefined) checkKeyName(change.name)
    const snapshot = await this.#settings.change((base) => {
      const stored = requireManagedKey(base, principal, id)
      // `lastUsedAt` is not compared: it may differ from the value in an earlier response.
      checkReadOnlyMembers(change, this.#toShownKey(stored), ['id', 'token', 'createdBy', 'createdAt'])
      const value = applyKeyChange(withHashedToken(stored), change, principal.isAdmin)
      const sponsors = widensRights(stored, value) ? responsibleUsersOf(base.users, principal) : []
      const createdBy = sponsors.length > 0 ? keyCreatorOf(sponsors, value.owner) : value.createdBy
      return [{ entity: 'bearerKeys', key: id, value: createdBy === value.createdBy ? value : { ...value, createdBy } }]
    }, principal)
    const key = requireManagedKey(snapshot, principal, id)
    return { data: this.#toShownKey(key), warnings: keyWarningsOf(snapshot, key) }
  }

  /** Removes a key. @throws NoSuch, Forbidden for another user's key */
  async remove (principal: Principal, id: string): Promise<void> {
    await this.#settings.change(
      (snapshot) => [{ entity: 'bearerKeys', key: requireManagedKey(snapshot, principal, id).id, value: undefined }],
      principal
    )
  }

  #toShownKey (key: BearerKey): ShownKey {
    const { tokenHash: _, tokenMask = '...', ...rest } = withHashedToken(key)
    const inactive = keyInactivityReason(key, this.#settings.current)
    return {
      ...rest,
      kind: key.kind ?? 'system',
      accessType: key.accessType ?? 'all',
      allowedGroups: key.allowedGroups ?? [],
      allowedServers: key.allowedServers ?? [],
      enabled: key.enabled ?? true,
      token: tokenMask,
      lastUsedAt: this.usage.lastUseOf(key),
      ...(inactive === undefined ? {} : { inactive })
    }
  }
}

/** Indexes the keys by token hash; of two keys with the same token, an enabled one is kept. */
function indexByHash (keys: Snapshot['keys']): Map<string, BearerKey> {
  const index = new Map<string, BearerKey>()
  for (const key of keys.values()) {
    const hash = key.tokenHash ?? (key.token === undefined ? undefined : sha256(key.token))
    if (hash !== undefined && (key.enabled !== false || !index.has(hash))) index.set(hash, key)
  }
  return index
}

/** The members of a new key that only admins may set. */
const scopeMembers = ['kind', 'owner', 'accessType', 'allowedGroups', 'allowedServers'] as const

const canManage = (principal: Principal, key: BearerKey): boolean =>
  principal.isAdmin || (key.kind === 'user' && key.owner === principal.username)

/** Finds a key that the principal may manage. @throws NoSuch, Forbidden */
function requireManagedKey ({ keys }: Snapshot, principal: Principal, id: string): BearerKey {
  const key = keys.get(id)
  if (!key) throw noSuchError('bearer key', id)
  if (!canManage(principal, key)) throw new errors.Forbidden('This bearer key belongs to another user')
  return key
}

/**
 * Checks the name of a key: it must not be reserved, and must not contain characters that hide or change what is
 * displayed, since people must be able to distinguish names.
 * @throws InvalidInput
 */
function checkKeyName (name: string): void {
  if (hasControlCharacters(name)) {
    throw new errors.InvalidInput('"name" must not have control characters')
  }
  const problem = reservedNameProblem(name)
  if (problem !== undefined) throw new errors.InvalidInput(`"name" ${problem}`)
}

/**
 * Returns warnings about a key: one for each list that its `accessType` ignores, one for each group or server in its
 * scope that does not exist, since the key will give access to it as soon as it does, and one for each problem with its
 * owner, creator or expiry. Scopes may list thousands of names: beyond `maxScopeWarnings`, one sentence states how many
 * more do not exist.
 */
function keyWarningsOf (snapshot: Snapshot, key: BearerKey): string[] {
  const { groups, servers, teams, users } = snapshot
  const { accessType = 'all', allowedGroups = [], allowedServers = [], owner, kind } = key
  const groupNames = new Set([...groups.values()].flatMap(({ id, name }) => [id, name]))
  const scopeWarnings = [
    ...accessType === 'groups' || accessType === 'custom'
      ? allowedGroups.filter((name) => !groupNames.has(name)).map((name) => 'There is no group ' +
        `${JSON.stringify(name)} yet: ${opensLaterClause}`)
      : [],
    ...accessType === 'servers' || accessType === 'custom'
      ? allowedServers.filter((name) => !servers.has(name)).map((name) => 'There is no server ' +
        `${JSON.stringify(name)} yet: ${opensLaterClause}`)
      : []
  ]
  const unusedLists = [
    ...allowedGroups.length > 0 && (accessType === 'all' || accessType === 'servers') ? ['allowedGroups'] : [],
    ...allowedServers.length > 0 && (accessType === 'all' || accessType === 'groups') ? ['allowedServers'] : []
  ].map((list) => `"${list}" has no effect, since "accessType" is "${accessType}"`)
  const validityWarnings = [
    ...keyExpiryOf(key) <= Date.now() ? [`"expiresAt" is over (${key.expiresAt}), so this key is not valid`] : [],
    ...owner === undefined || users.has(owner) || teamOfKeyOwner(snapshot, owner)
      ? []
      : [`There is no user ${JSON.stringify(owner)}, the owner of the ` +
        `key${kind === 'user' ? ', so it is not valid' : ''}`],
    ...owner?.startsWith('@') === true && users.has(owner) && teams.has(owner.slice(1))
      ? [`${JSON.stringify(owner)} is a user, and the owner of the key; the team with that name is not`]
      : [],
    ...requiredAdminsOf(key)
      .filter((name) => users.get(name)?.isAdmin !== true)
      .map((name) => `${JSON.stringify(name)} is not an admin, so this ${kind ?? 'system'} key is not valid`)
  ]
  const left = scopeWarnings.length - maxScopeWarnings
  const omitted = left > 0 ? [`${left} more servers and groups do not exist yet`] : []
  return [...unusedLists, ...scopeWarnings.slice(0, maxScopeWarnings), ...omitted, ...validityWarnings]
}

const opensLaterClause = 'the key gives access to it as soon as it exists'
const maxScopeWarnings = 20

import type { Snapshot } from '../../../db/store.ts'
import type { BearerKey } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { teamOfKeyOwner, type Principal, responsibleUsersOf } from '../../settings/index.ts'
import { storedUsernameOf } from '../users/rules.ts'
import { parseKeyExpiry } from './expiry.ts'

type KeyScopeMembers = Required<Pick<BearerKey, 'kind' | 'accessType' | 'allowedGroups' | 'allowedServers'>>
type RequestedMembers = Partial<Pick<BearerKey, keyof KeyScopeMembers | 'owner'>>

/** The scope of a user key without restrictions: the key sees everything that its owner sees, on MCP routes. */
export const fullUserScope: KeyScopeMembers = { kind: 'user', accessType: 'all', allowedGroups: [], allowedServers: [] }

/** Returns the access type that limits a key to the listed groups and servers. At least one list must be given. */
function accessTypeOf (
  { allowedGroups, allowedServers }: Pick<RequestedMembers, 'allowedGroups' | 'allowedServers'>
): KeyScopeMembers['accessType'] {
  if (allowedServers === undefined || (allowedServers.length === 0 && (allowedGroups?.length ?? 0) > 0)) return 'groups'
  return allowedGroups === undefined || (allowedGroups.length === 0 && allowedServers.length > 0) ? 'servers' : 'custom'
}

/**
 * Returns the kind and scope of a key that an admin requests. A system key without lists of groups or servers requires
 * an explicit `accessType`, so that no key gets full access by accident.
 * @throws InvalidInput
 */
export function requestedKeyScope (input: RequestedMembers): KeyScopeMembers {
  const { kind, accessType, allowedGroups, allowedServers } = input
  const hasLists = allowedGroups !== undefined || allowedServers !== undefined
  if (kind === 'system' && accessType === undefined && !hasLists) {
    throw new errors.InvalidInput(
      '"accessType" is the scope of a system key: "all", including the management API, or "groups", "servers" or ' +
      '"custom"'
    )
  }
  return {
    kind: kind ?? (accessType !== undefined || hasLists ? 'system' : 'user'),
    accessType: accessType ?? (hasLists ? accessTypeOf(input) : 'all'),
    allowedGroups: allowedGroups ?? [],
    allowedServers: allowedServers ?? []
  }
}

/**
 * Returns the owner and the creator of a new key. A user key for which neither kind nor owner is requested belongs to
 * the caller; a caller without an account, such as the guest or `system`, must name an owner. A user key may also
 * belong to a team.
 * @param kind the kind of the new key
 * @throws InvalidInput, Forbidden
 */
export function ownerAndCreatorOf (
  { teams, users }: Pick<Snapshot, 'teams' | 'users'>,
  principal: Principal,
  kind: BearerKey['kind'],
  { owner: named, kind: requestedKind }: Pick<RequestedMembers, 'owner' | 'kind'>
): Pick<BearerKey, 'owner' | 'createdBy'> {
  const { username = '' } = principal
  const self = users.has(username) ? username : undefined
  const isByKey = principal.kind === 'system-key'
  // A system key created with a system key that has an owner gets the same owner, so that it depends on the same users.
  const inherited = kind === 'user' ? (requestedKind === undefined ? self : undefined) : isByKey ? self : undefined
  const owner = named === undefined ? inherited : storedUsernameOf(users, named)
  if (owner === undefined && (kind === 'user' || self === undefined)) {
    throw new errors.InvalidInput(
      kind === 'user'
        ? '"owner" must be the name of a user: a key of kind "user" sees what its owner sees'
        : '"owner" must be the name of an admin: there is no account behind your credential'
    )
  }
  if (owner !== undefined && !users.has(owner) && !(kind === 'user' && teamOfKeyOwner({ teams, users }, owner))) {
    throw new errors.InvalidInput(owner.startsWith('@') && teams.has(owner.slice(1))
      ? '"owner": a key of a team is of kind "user"'
      : `"owner": there is no ${owner.startsWith('@') ? 'team' : 'user'} named ${JSON.stringify(owner)}`)
  }
  if (kind !== 'user' && owner !== undefined) {
    if (users.get(owner)?.isAdmin !== true) {
      throw new errors.InvalidInput(
        `"owner": ${JSON.stringify(owner)} is not an admin, so a system key of this user would not be valid`
      )
    }
    if (isByKey && self !== undefined && owner !== self) {
      throw new errors.InvalidInput(
        `"owner": with a key of ${JSON.stringify(self)} you can create system keys of ${JSON.stringify(self)} only`
      )
    }
  }
  const sponsors = responsibleUsersOf(users, principal)
  return { owner, createdBy: sponsors.length > 0 ? keyCreatorOf(sponsors, owner) : isByKey ? undefined : owner }
}

/**
 * Returns the creator to store for a key with this owner. The validity of a key can depend on at most two users: its
 * creator and its owner.
 * @param sponsors the users on whose rights the caller's own credential depends, at least one
 * @throws Forbidden if the key would depend on three users
 */
export function keyCreatorOf (sponsors: readonly string[], owner: string | undefined): string | undefined {
  const [creator = owner, ...more] = sponsors.filter((name) => name !== owner)
  if (more.length === 0) return creator
  throw new errors.Forbidden(
    `Your key depends on the rights of ${sponsors.map((name) => JSON.stringify(name)).join(' and ')}. ` +
    'To give rights to another key, log in, or use a key that depends on your rights only'
  )
}

/** An update of a bearer key. It may contain members with their current values. */
export type KeyChange =
  Partial<Omit<BearerKey, 'id' | 'token' | 'tokenHash' | 'tokenMask' | 'createdAt' | 'lastUsedAt' | 'expiresAt'>> & {
    /** A time in ISO 8601; null if the key never expires. */
    expiresAt?: string | null
  }

const defaults: KeyChange = {
  kind: 'system', accessType: 'all', allowedGroups: [], allowedServers: [], enabled: true, expiresAt: null
}

/**
 * Returns a key with a change applied.
 * @throws InvalidInput if nothing is sent, or for a member that cannot be changed; Forbidden for a member that only an
 *   admin may change
 */
export function applyKeyChange (key: BearerKey, input: KeyChange, byAdmin: boolean): BearerKey {
  const before: KeyChange = { ...defaults, ...key }
  const change =
    withDerivedAccessType(
      typeof input.expiresAt === 'string' ? { ...input, expiresAt: parseKeyExpiry(input.expiresAt) } : input, before
    )
  const sentMembers = (Object.keys(change) as Array<keyof KeyChange>).filter((member) =>
    changeableMembers.has(member) && change[member] !== undefined)
  if (sentMembers.length === 0) {
    throw new errors.InvalidInput(
      'There is nothing to change: send "name" or "enabled", ' +
      'as an admin also "accessType", "allowedGroups", "allowedServers" or "expiresAt"'
    )
  }
  const differing = sentMembers.filter((member) => JSON.stringify(change[member]) !== JSON.stringify(before[member]))
  const fixed = differing.find((member) => member === 'kind' || member === 'owner')
  const isOwnChange = differing.every((member) => member === 'name' || member === 'enabled')
  if (!byAdmin && !isOwnChange) {
    throw new errors.Forbidden(
      'You can change only "name" and "enabled" of your bearer keys; ask an admin for other changes'
    )
  }
  if (fixed !== undefined) {
    throw new errors.InvalidInput(
      `"${fixed}" of a bearer key cannot be changed, since its token is already in use: create a new key`
    )
  }
  const { expiresAt, ...rest } =
    { ...key, ...Object.fromEntries(differing.map((member) => [member, change[member]])) } as BearerKey
  return expiresAt === undefined || expiresAt === null ? rest : { ...rest, expiresAt }
}

/**
 * Adds the access type to a change that contains a non-empty list but no access type, if the key has access to
 * everything: the lists restrict the key, as they restrict a new key.
 */
function withDerivedAccessType (change: KeyChange, before: KeyChange): KeyChange {
  const { accessType, allowedGroups, allowedServers } = change
  const isNarrowed = [allowedGroups, allowedServers].some((list) => list !== undefined && list.length > 0)
  return accessType === undefined && before.accessType === 'all' && isNarrowed
    ? { ...change, accessType: accessTypeOf({ allowedGroups, allowedServers }) }
    : change
}

const changeableMembers = new Set<keyof KeyChange>(
  ['name', 'kind', 'owner', 'accessType', 'allowedGroups', 'allowedServers', 'enabled', 'expiresAt']
)

import type { BearerKey } from '../../../schemas/settings.ts'
import { errors } from '../../base/errors/index.ts'
import { toExpiry } from './expiry.ts'
import { accessOf } from './new-key.ts'

/** The members of a key that a caller sends. One with the same value as before is not a change. */
export type KeyChange = Partial<Omit<BearerKey, 'id' | 'token' | 'tokenHash' | 'tokenMask' | 'createdAt' | 'lastUsedAt' | 'expiresAt'>> & {
  /** Null: it never expires. */
  expiresAt?: string | null
}

const defaults: KeyChange = { kind: 'system', accessType: 'all', allowedGroups: [], allowedServers: [], enabled: true, expiresAt: null }

/**
 * A key after a change.
 * @throws InvalidInput when nothing is sent, or for a member that cannot be changed; Forbidden for a member that only an admin may change
 */
export function changed (key: BearerKey, asked: KeyChange, byAdmin: boolean): BearerKey {
  const before: KeyChange = { ...defaults, ...key }
  const change = withScope(typeof asked.expiresAt === 'string' ? { ...asked, expiresAt: toExpiry(asked.expiresAt) } : asked, before)
  const given = (Object.keys(change) as Array<keyof KeyChange>).filter((member) => members.has(member) && change[member] !== undefined)
  if (given.length === 0) {
    throw new errors.InvalidInput(
      'There is nothing to change: send "name" or "enabled", ' +
      'as an admin also "accessType", "allowedGroups", "allowedServers" or "expiresAt"'
    )
  }
  const differing = given.filter((member) => JSON.stringify(change[member]) !== JSON.stringify(before[member]))
  const fixed = differing.find((member) => member === 'kind' || member === 'owner')
  const own = differing.every((member) => member === 'name' || member === 'enabled')
  if (!byAdmin && !own) throw new errors.Forbidden('You may change "name" and "enabled" of your bearer keys; ask an admin for more')
  if (fixed !== undefined) {
    throw new errors.InvalidInput(`"${fixed}" of a bearer key cannot be changed, since its token is in somebody's hands: make a new key`)
  }
  const { expiresAt, ...rest } = { ...key, ...Object.fromEntries(differing.map((member) => [member, change[member]])) } as BearerKey
  return expiresAt === undefined || expiresAt === null ? rest : { ...rest, expiresAt }
}

/** Lists that are given to a key that opens everything narrow it to what they name, as those of a new key do. */
function withScope (change: KeyChange, before: KeyChange): KeyChange {
  const { accessType, allowedGroups, allowedServers } = change
  const isNarrowed = [allowedGroups, allowedServers].some((list) => list !== undefined && list.length > 0)
  return accessType === undefined && before.accessType === 'all' && isNarrowed
    ? { ...change, accessType: accessOf({ allowedGroups, allowedServers }) }
    : change
}

const members = new Set<keyof KeyChange>(['name', 'kind', 'owner', 'accessType', 'allowedGroups', 'allowedServers', 'enabled', 'expiresAt'])

import type { Snapshot } from '../../../../db/store.ts'
import type { BearerKey } from '../../../../schemas/settings.ts'
import {
  type CredentialReference, bearerKeyHeaderName, teamOfKeyOwner, type Principal
} from '../../../settings/index.ts'
import type { BearerKeys } from '../../keys/keys.ts'
import { isActiveKey } from '../../keys/rights.ts'
import { type AuthStep, bearerTokenIn, type RequestCredentials } from '../chain.ts'

/**
 * Authenticates by a bearer key, in the header named by `routing.bearerAuthHeaderName`, with or without `Bearer `;
 * outside the MCP routes also in `Authorization`. The management API accepts only unscoped system keys.
 */
export const bearerKeyStep = (keys: BearerKeys): AuthStep => ({ headers }, routes, snapshot) => {
  const name = bearerKeyHeaderName(snapshot)
  const named = headers[name]
  const key = typeof named === 'string' ? keys.find(bearerTokenIn(named) ?? named.trim()) : undefined
  if (routes === 'mcp') return key && recordUse(keys, key, principalOf(key, snapshot))
  const { authorization } = headers
  const bearer = name === 'authorization' ? undefined : bearerTokenIn(authorization)
  // A key in `Authorization` takes precedence over one in the configured header.
  for (const each of [bearer === undefined ? undefined : keys.find(bearer), key]) {
    const principal = each && recordUse(
      keys, each, routes === 'api' ? managementPrincipalOf(each) : principalOf(each, snapshot)
    )
    if (principal) return principal
  }
  return undefined
}

/**
 * Returns why the management API refuses the valid key of a request, as a sentence with a space after it; undefined if
 * the request has no valid key, or only keys that the API accepts.
 */
export function keyRefusalReason (
  keys: BearerKeys, headers: RequestCredentials['headers'], snapshot: Snapshot
): string | undefined {
  for (const header of [headers.authorization, headers[bearerKeyHeaderName(snapshot)]]) {
    const key = typeof header === 'string' ? keys.find(bearerTokenIn(header) ?? header.trim()) : undefined
    const only = 'for MCP and /api/tools/<server>/<tool> only. '
    if (key?.kind === 'user') return `This is a user key, which is ${only}`
    if (key && (key.accessType ?? 'all') !== 'all') return `This key has a limited scope, so it is ${only}`
  }
  return undefined
}

function recordUse (keys: BearerKeys, key: BearerKey, principal: Principal | undefined): Principal | undefined {
  if (principal) keys.usage.recordUse(key)
  return principal
}

/**
 * Returns the principal of an unscoped system key on the management API: the key's owner, or `system` without an owner,
 * with admin rights. Returns undefined for other keys.
 */
function managementPrincipalOf (key: BearerKey): Principal | undefined {
  if (key.kind === 'user' || (key.accessType ?? 'all') !== 'all') return undefined
  const username = key.owner ?? 'system'
  const inLaterSnapshot = (later: Snapshot): Principal | undefined => {
    const now = later.keys.get(key.id)
    return now && isActiveKey(now, later) ? managementPrincipalOf(now) : undefined
  }
  return {
    key: `${keyPrefix}${key.id}`,
    kind: 'system-key',
    user: username,
    username,
    isAdmin: true,
    createdBy: key.createdBy,
    credential: credentialOf(key),
    inSnapshot: inLaterSnapshot
  }
}

const principals = new WeakMap<Snapshot, Map<BearerKey, Principal | undefined>>()

/** Returns the principal of a key on MCP routes, cached per snapshot, since views are cached by principal. */
function principalOf (key: BearerKey, snapshot: Snapshot): Principal | undefined {
  let known = principals.get(snapshot)
  if (!known) principals.set(snapshot, known = new Map())
  if (!known.has(key)) known.set(key, toPrincipal(key, snapshot))
  return known.get(key)
}

/**
 * Creates the principal of a key; returns undefined for a user key whose owner does not exist. The principals of system
 * keys and of team keys have no username.
 */
function toPrincipal (key: BearerKey, snapshot: Snapshot): Principal | undefined {
  const { accessType = 'all' } = key
  const common = {
    key: `${keyPrefix}${key.id}`,
    credential: credentialOf(key),
    keyScope: accessType === 'all'
      ? undefined
      : { accessType, groups: key.allowedGroups ?? [], servers: key.allowedServers ?? [] }
  }
  if (key.kind !== 'user') return { ...common, kind: 'system-key', user: key.owner ?? common.key, isAdmin: true }
  const team = teamOfKeyOwner(snapshot, key.owner)
  if (team) return { ...common, kind: 'user-key', user: common.key, team: team.name, isAdmin: false }
  const owner = key.owner === undefined ? undefined : snapshot.users.get(key.owner)
  if (owner === undefined) return undefined
  const { username } = owner
  return { ...common, kind: 'user-key', user: username, username, isAdmin: owner.isAdmin === true }
}

const credentialOf = ({ id, name }: BearerKey): CredentialReference => ({ id, name })

/** Returns the principal of the same key in another snapshot; undefined if the key is missing or inactive there. */
export const currentPrincipalOfKey = (principal: Principal, snapshot: Snapshot): Principal | undefined =>
  principalOfKey(principal.key.slice(keyPrefix.length), snapshot)

/**
 * Returns the principal of a stored key on MCP routes; undefined if the key is missing or inactive, or its owner does
 * not exist.
 */
export function principalOfKey (id: string, snapshot: Snapshot): Principal | undefined {
  const key = snapshot.keys.get(id)
  return key && isActiveKey(key, snapshot) ? principalOf(key, snapshot) : undefined
}

const keyPrefix = 'key '

import { isObject } from '../../../protocol/json.ts'
import { securityOf } from '../../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { addressPlaces, pointerTo, type StoredByUser, writtenByUser } from '../../../schemas/stored-by-user.ts'
import { isMask } from '../../base/secrets/index.ts'

/**
 * The values that a user wrote and that are still a user's after an admin's edit: an edit stands for a value only if it
 * writes it, and a value that is sent back as it was is not written. An edit by a user makes all values the user's,
 * since a user may send an admin's header to another address.
 * @param stored the config before the edit
 * @param next the config after it, with masks replaced by the stored secrets
 * @returns undefined: none
 */
export function afterAdminsEdit (stored: ServerConfig | undefined, next: ServerConfig): StoredByUser {
  if (stored?.storedByUser === undefined) return undefined
  const isUsers = writtenByUser(stored.storedByUser)
  const left: string[] = []
  for (const place of [...addressPlaces, ['command'], ['cwd']] as const) {
    const value = valueAt(next, place)
    if (value !== undefined && isUsers(...place) && value === valueAt(stored, place)) left.push(pointerTo(...place))
  }
  for (const map of ['env', 'headers'] as const) {
    left.push(...leftInMap(map, stored[map] ?? {}, next[map] ?? {}, isUsers))
  }
  // Arguments have no names: one that a user wrote is that user's wherever it stands now.
  const users = new Set((stored.args ?? []).filter((_arg, at) => isUsers('args', at)))
  left.push(...(next.args ?? []).flatMap((arg, at) => users.has(arg) ? [pointerTo('args', at)] : []))
  return left.length === 0 ? undefined : left
}

/** A value that is not changed, or whose name alone was. */
function leftInMap (
  map: 'env' | 'headers',
  stored: Readonly<Record<string, string>>,
  next: Readonly<Record<string, string>>,
  isUsers: ReturnType<typeof writtenByUser>
): string[] {
  const users = Object.entries(stored).filter(([name]) => isUsers(map, name))
  const renamed = new Set(users.filter(([name]) => !Object.hasOwn(next, name)).map(([, value]) => value))
  const kept = new Map(users)
  return Object.entries(next).flatMap(([name, value]) => {
    const isLeft = kept.get(name) === value || (!Object.hasOwn(stored, name) && renamed.has(value))
    return isLeft ? [pointerTo(map, name)] : []
  })
}

/**
 * A value as a text for comparison; of a description and of credentials, the addresses in it. Undefined: there is none.
 */
function valueAt (
  { url, command, cwd, proxy, openapi, oauth }: ServerConfig,
  [first, second, third]: readonly string[]
): string | undefined {
  if (first === 'url') return url
  if (first === 'command') return command
  if (first === 'cwd') return cwd
  if (first === 'proxy') return proxy && JSON.stringify(proxy)
  if (second === 'authorizationEndpoint') return oauth?.authorizationEndpoint
  if (second === 'tokenEndpoint') return oauth?.tokenEndpoint
  if (second === 'url') return openapi?.url
  if (second === 'schema') return openapi?.schema && JSON.stringify(addressesOf(openapi.schema))
  const security = openapi?.security && securityOf(openapi.security)
  return third === 'tokenUrl' ? security?.tokenUrl : security?.url
}

/** Members of OpenAPI descriptions, of any version, that determine where calls and credentials are sent. */
const addressMembers = new Set(['servers', 'host', 'basePath', 'schemes', 'tokenUrl', 'openIdConnectUrl'])

/**
 * The values of those members, at any depth.
 * @param schema the description, or its text, which then counts as a whole
 */
function addressesOf (schema: unknown): unknown[] {
  if (!isObject(schema) && !Array.isArray(schema)) return typeof schema === 'string' ? [schema] : []
  return Object.entries(schema)
    .flatMap(([key, value]) => (addressMembers.has(key) ? [value] : addressesOf(value)))
    .filter((each) => each !== undefined)
}

/**
 * The addresses and the command to which the secrets of a config are sent, as a text for comparison. Masks are left
 * out.
 */
export function targetOf (config: unknown): string {
  const { url, command, openapi, proxy, oauth } = config as ServerConfig
  const security = openapi?.security && securityOf(openapi.security)
  const targets = [
    url,
    command,
    openapi?.url,
    ...addressesOf(openapi?.schema),
    security?.tokenUrl,
    security?.url,
    proxy?.url,
    oauth?.authorizationEndpoint,
    oauth?.tokenEndpoint,
    oauth?.issuer
  ]
  return JSON.stringify(targets.map((target) => isMask(target) ? undefined : target))
}

import { isObject } from '../../../protocol/json.ts'
import { securityOf } from '../../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import {
  addressPlaces, jsonPointerOf, type StoredByUser, createUserAuthorshipCheck
} from '../../../schemas/stored-by-user.ts'
import { isMask } from '../../base/secrets/index.ts'

/**
 * Returns the places of values that are still attributed to a user after an edit by an admin. An admin takes
 * responsibility for a value by changing it; an unchanged value remains the user's. An edit by a user makes all values
 * the user's, since it may send an admin's header to another address.
 * @param stored the config before the edit
 * @param next the config after it, with masks replaced by the stored secrets
 * @returns undefined if there are none
 */
export function remainingUserPlaces (stored: ServerConfig | undefined, next: ServerConfig): StoredByUser {
  if (stored?.storedByUser === undefined) return undefined
  const isUsers = createUserAuthorshipCheck(stored.storedByUser)
  const left: string[] = []
  for (const place of [...addressPlaces, ['command'], ['cwd']] as const) {
    const value = valueAt(next, place)
    if (value !== undefined && isUsers(...place) && value === valueAt(stored, place)) left.push(jsonPointerOf(...place))
  }
  for (const map of ['env', 'headers'] as const) {
    left.push(...unchangedPlacesInMap(map, stored[map] ?? {}, next[map] ?? {}, isUsers))
  }
  // Arguments have no names, so an argument written by a user remains the user's at any position.
  const users = new Set((stored.args ?? []).filter((_arg, at) => isUsers('args', at)))
  left.push(...(next.args ?? []).flatMap((arg, at) => users.has(arg) ? [jsonPointerOf('args', at)] : []))
  return left.length === 0 ? undefined : left
}

/** Returns the places of a user's values in a map that are unchanged, or of which only the name was changed. */
function unchangedPlacesInMap (
  map: 'env' | 'headers',
  stored: Readonly<Record<string, string>>,
  next: Readonly<Record<string, string>>,
  isUsers: ReturnType<typeof createUserAuthorshipCheck>
): string[] {
  const users = Object.entries(stored).filter(([name]) => isUsers(map, name))
  const renamed = new Set(users.filter(([name]) => !Object.hasOwn(next, name)).map(([, value]) => value))
  const kept = new Map(users)
  return Object.entries(next).flatMap(([name, value]) => {
    const isLeft = kept.get(name) === value || (!Object.hasOwn(stored, name) && renamed.has(value))
    return isLeft ? [jsonPointerOf(map, name)] : []
  })
}

/**
 * Returns the value at a place of a config, as a text for comparison. For an API description and for credentials, it
 * consists of the addresses in them; undefined if the config has no value there.
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

/** Returns the values of `addressMembers`, at any depth. @param schema the description, or the address of one */
function addressesOf (schema: unknown): unknown[] {
  if (!isObject(schema) && !Array.isArray(schema)) return typeof schema === 'string' ? [schema] : []
  return Object.entries(schema)
    .flatMap(([key, value]) => (addressMembers.has(key) ? [value] : addressesOf(value)))
    .filter((each) => each !== undefined)
}

/**
 * Returns the addresses and the command that receive the secrets of a config, as a text for comparison. Masks are
 * ignored.
 */
export function secretTargetsOf (config: unknown): string {
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

import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../protocol/json.ts'
import { normalizeSecurity } from '../../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import {
  addressPlaces, jsonPointerOf, type ValuesStoredByUser, createUserAuthorshipCheck
} from '../../../schemas/stored-by-user.ts'
import { containsMask } from '../../base/secrets/index.ts'
import { defaultOwner } from '../../identity/index.ts'
import { type Principal, storersOf } from '../../settings/index.ts'

/**
 * Returns the new `storedByUser` of a config after an edit by an admin: the JSON pointers of the values that are still
 * attributed to a user. An admin takes responsibility for a value by changing it; an unchanged value remains the
 * user's.
 * @param stored the config before the edit; undefined for a new server
 * @param next the config after it, with masks replaced by the stored secrets
 * @returns undefined if there are no such values
 */
export function valuesStoredByUserAfterEdit (stored: ServerConfig | undefined, next: ServerConfig): ValuesStoredByUser {
  if (stored?.storedByUser === undefined) return undefined
  const isByUser = createUserAuthorshipCheck(stored.storedByUser)
  const places: string[] = []
  for (const place of [...addressPlaces, ['command'], ['cwd']] as const) {
    const value = valueAt(next, place)
    const isUnchanged = value !== undefined && value === valueAt(stored, place)
    if (isUnchanged && isByUser(...place)) places.push(jsonPointerOf(...place))
  }
  for (const map of ['env', 'headers'] as const) {
    places.push(...unchangedPlacesInMap(map, stored[map] ?? {}, next[map] ?? {}, isByUser))
  }
  // Arguments have no names: one that a user wrote remains the user's at any position.
  const argsByUser = new Set((stored.args ?? []).filter((_arg, at) => isByUser('args', at)))
  places.push(...(next.args ?? []).flatMap((arg, at) => argsByUser.has(arg) ? [jsonPointerOf('args', at)] : []))
  return places.length === 0 ? undefined : places
}

/** Returns the pointers of a user's values in a map that are unchanged, or have only been renamed. */
function unchangedPlacesInMap (
  map: 'env' | 'headers',
  stored: Readonly<Record<string, string>>,
  next: Readonly<Record<string, string>>,
  isByUser: ReturnType<typeof createUserAuthorshipCheck>
): string[] {
  const valuesByUser = new Map(Object.entries(stored).filter(([name]) => isByUser(map, name)))
  const removedValues = new Set([...valuesByUser].flatMap(([name, value]) => Object.hasOwn(next, name) ? [] : [value]))
  return Object.entries(next).flatMap(([name, value]) => {
    const isRenamed = !Object.hasOwn(stored, name) && removedValues.has(value)
    return valuesByUser.get(name) === value || isRenamed ? [jsonPointerOf(map, name)] : []
  })
}

/**
 * Returns the value at a place of a config, as a text for comparison; undefined if there is none. Of an API description
 * and of `openapi.security`, only the addresses are compared.
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
  const security = openapi?.security && normalizeSecurity(openapi.security)
  return third === 'tokenUrl' ? security?.tokenUrl : security?.url
}

/** The members of OpenAPI descriptions, of any version, that determine where calls and credentials are sent. */
const addressMembers = new Set(['servers', 'host', 'basePath', 'schemes', 'tokenUrl', 'openIdConnectUrl'])

/** Returns the values of `addressMembers` in an API description, at any depth; for a string, the string itself. */
function addressesOf (schema: unknown): unknown[] {
  if (!isObject(schema) && !Array.isArray(schema)) return typeof schema === 'string' ? [schema] : []
  return Object.entries(schema)
    .flatMap(([key, value]) => (addressMembers.has(key) ? [value] : addressesOf(value)))
    .filter((each) => each !== undefined)
}

/**
 * Returns the addresses and the command that the secrets of a config are sent to, as a text for comparison. Addresses
 * that are masks are ignored.
 */
export function secretTargetsOf (config: unknown): string {
  const { url, command, openapi, proxy, oauth } = config as ServerConfig
  const security = openapi?.security && normalizeSecurity(openapi.security)
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
  return JSON.stringify(targets.map((target) => containsMask(target) ? undefined : target))
}

/**
 * Whether two configs with the same command give the same arguments, folder and environment to its process. These
 * decide what the process does with its secrets: its environment may make it load other code.
 */
export function isLaunchedAlike (one: ServerConfig, other: ServerConfig): boolean {
  const launchOf = ({ args = [], cwd, env = {} }: ServerConfig): unknown => ({ args, cwd, env })
  return isDeepStrictEqual(launchOf(one), launchOf(other))
}

/** Returns the users besides the principal who stored a config, and thus may have written its secrets. */
export function otherStorersOf (config: ServerConfig, { username }: Principal): string[] {
  const storers = storersOf(config)
  // Without storers, the operator stored it.
  return (storers.length === 0 ? [defaultOwner] : storers).filter((name) => name !== username)
}

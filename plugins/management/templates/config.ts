import { isObject } from '../../../protocol/json.ts'
import { anyVariable } from '../../../schemas/foreign-variables.ts'
import { ServerConfig } from '../../../schemas/server.ts'
import type { StoredByUser } from '../../../schemas/stored-by-user.ts'
import { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { coverText, maskAll, maskConfig } from '../../base/secrets/index.ts'
import { fillPlaces, leftAsWritten } from '../../upstream/index.ts'
import { referencesIn, type TemplateVariables } from './variables.ts'

type Json = Record<string, unknown>

/** Members of a config that belong to one gateway and its users. */
const local = new Set(['owner', 'createdAt', 'storedBy', 'storedByUser', 'sharedWithUsers'])
const members = Object.keys(ServerConfig.properties).filter((name) => !local.has(name))
/** Members of `oauth` that are configuration. Others are what a login has left. */
const oauthMembers = Object.keys(UpstreamOAuth.properties)
/** Members with texts of people and of servers, in which nothing is a secret. */
const texts = new Set(['description', 'tools', 'prompts', 'resources', 'passthroughHeaders', 'type', 'visibility', 'isolation'])

const pick = (value: Readonly<Json>, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap((name) => Object.hasOwn(value, name) && value[name] !== undefined ? [[name, value[name]]] : []))

/** The members of a config that go into a template, as they are stored; those that are not known are left out. */
export function portable (config: Readonly<Json>): Json {
  const kept = pick(config, members)
  if (kept.visibility === 'private') delete kept.visibility
  if (kept.enabled === true) delete kept.enabled
  return isObject(kept.oauth) ? { ...kept, oauth: pick(kept.oauth, oauthMembers) } : kept
}

/** The members of a config that the gateway knows and that `portable` leaves out. */
export const leftOut = (config: Readonly<Json>): string[] => Object.keys(config).filter((name) => local.has(name))

/** The variables that a config names in places where they are filled in. */
export function referenced ({ env, headers, url, args, proxy, oauth, openapi }: Readonly<Json>): string[] {
  const { url: document, security } = isObject(openapi) ? openapi : {}
  return referencesIn(JSON.stringify([env, headers, url, args, proxy, oauth, document, security]))
}

/**
 * A config with variables in the places of its secrets: of what is masked for people, and of what else looks like a token. A `${NAME}` that
 * a user wrote is replaced as well: an admin who imports the template would fill it in (DECISIONS §15).
 */
export function withoutSecrets (name: string, config: Readonly<Json>, variables: TemplateVariables): Json {
  const isUsers = isByUser(config)
  const cover = variables.coverOf(name, { isUsers })
  const { env, ...rest } = isUsers ? withoutUsersVariables(name, config, variables) : portable(config)
  const named = maskConfig(rest, cover)
  const covered = Object.fromEntries(Object.entries(named).map(([key, value]) =>
    [key, texts.has(key) ? value : key === 'openapi' ? coverOpenApi(value, cover) : coverAll(value, cover)]))
  return env === undefined ? covered : { ...covered, env: maskAll(env, variables.coverOf(name, { isOwnName: true, isUsers })) }
}

/** Whether a user without admin rights wrote some value of a config. */
const isByUser = ({ storedByUser }: Readonly<Json>): boolean => storedByUser !== undefined && storedByUser !== false

/**
 * What `portable` keeps of a config, with other variables in place of those that are not filled in here, in any notation: the import reads
 * those of other programs.
 */
function withoutUsersVariables (name: string, config: Readonly<Json>, variables: TemplateVariables): Json {
  const isLeft = leftAsWritten(config.storedByUser as StoredByUser)
  return fillPlaces(portable(config) as ServerConfig, (text, place, ...within) => isLeft(place, ...within)
    ? text.replace(anyVariable, (written) => variables.ofUsers(written, name, String(within[0] ?? place)))
    : text)
}

/** The description of an API is no place of tokens: its names and texts may look like some. */
function coverOpenApi (value: unknown, cover: ReturnType<TemplateVariables['coverOf']>): unknown {
  if (!isObject(value)) return value
  const { schema, ...rest } = value
  return { ...coverAll(rest, cover) as Json, ...(schema === undefined ? {} : { schema }) }
}

function coverAll (value: unknown, cover: ReturnType<TemplateVariables['coverOf']>): unknown {
  if (typeof value === 'string') return coverText(value, cover)
  if (Array.isArray(value)) return value.map((each) => coverAll(each, cover))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coverAll(each, cover)]))
}

import { isObject } from '../../../protocol/json.ts'
import { adopt } from '../../../schemas/foreign-config.ts'
import { anyVariable } from '../../../schemas/foreign-variables.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { ServerConfig } from '../../../schemas/server.ts'
import { GroupMember } from '../../../schemas/settings.ts'
import type { StoredByUser } from '../../../schemas/stored-by-user.ts'
import { type SentTemplate, Template, TemplateGroup } from '../../../schemas/templates.ts'
import { isComment, quoteName } from '../../../schemas/unknown-members.ts'
import { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { errors } from '../../base/errors/index.ts'
import { maskTokens, maskAll, maskConfig } from '../../base/secrets/index.ts'
import { mapVariablePlaces, keepsVariables } from '../../upstream/index.ts'
import { referencesIn, type TemplateVariables } from './variables.ts'

type Json = Record<string, unknown>

/** Members of a config that belong to one gateway and its users. */
const local = new Set(['owner', 'createdAt', 'storedBy', 'storedByUser', 'sharedWithUsers'])
const members = Object.keys(ServerConfig.properties).filter((name) => !local.has(name))
/** Members of `oauth` that are configuration. Others are what a login has left. */
const oauthMembers = Object.keys(UpstreamOAuth.properties)
/** Members with texts of people and of servers, in which nothing is a secret. */
const texts =
  new Set(['description', 'tools', 'prompts', 'resources', 'passthroughHeaders', 'type', 'visibility', 'isolation'])

const pick = (value: Readonly<Json>, names: readonly string[]): Json =>
  Object.fromEntries(
    names.flatMap((name) => Object.hasOwn(value, name) && value[name] !== undefined ? [[name, value[name]]] : [])
  )

/** The members of a config that go into a template, as they are stored; those that are not known are left out. */
export function portable (config: Readonly<Json>): Json {
  const kept = pick(config, members)
  if (kept.visibility === 'private') delete kept.visibility
  if (kept.enabled === true) delete kept.enabled
  return isObject(kept.oauth) ? { ...kept, oauth: pick(kept.oauth, oauthMembers) } : kept
}

/** The members of a config that the gateway knows and that `portable` leaves out. */
const leftOut = (config: Readonly<Json>): string[] => Object.keys(config).filter((name) => local.has(name))

/** The variables that a config names in places where they are filled in. */
export function referenced ({ env, headers, url, args, proxy, oauth, openapi }: Readonly<Json>): string[] {
  const { url: document, security } = isObject(openapi) ? openapi : {}
  return referencesIn(JSON.stringify([env, headers, url, args, proxy, oauth, document, security]))
}

/**
 * A config with variables in the places of its secrets: of what is masked for people, and of what else looks like a
 * token. A `${NAME}` that a user wrote is replaced as well: an admin who imports the template would fill it in.
 */
export function withoutSecrets (name: string, config: Readonly<Json>, variables: TemplateVariables): Json {
  const isUsers = isByUser(config)
  const cover = variables.coverOf(name, { isUsers })
  const { env, ...rest } = isUsers ? withoutUsersVariables(name, config, variables) : portable(config)
  const named = maskConfig(rest, cover)
  const covered = Object.fromEntries(Object.entries(named).map(([key, value]) =>
    [key, texts.has(key) ? value : key === 'openapi' ? coverOpenApi(value, cover) : coverAll(value, cover)]))
  return env === undefined
    ? covered
    : { ...covered, env: maskAll(env, variables.coverOf(name, { isOwnName: true, isUsers })) }
}

/** Whether a user without admin rights wrote some value of a config. */
const isByUser = ({ storedByUser }: Readonly<Json>): boolean => storedByUser !== undefined && storedByUser !== false

/**
 * The portable members of a config, with other variables in place of those that are not filled in here, in any
 * notation: the import reads those of other programs.
 */
function withoutUsersVariables (name: string, config: Readonly<Json>, variables: TemplateVariables): Json {
  const isLeft = keepsVariables(config.storedByUser as StoredByUser)
  return mapVariablePlaces(portable(config) as ServerConfig, (text, place, ...within) => isLeft(place, ...within)
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
  if (typeof value === 'string') return maskTokens(value, cover)
  if (Array.isArray(value)) return value.map((each) => coverAll(each, cover))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coverAll(each, cover)]))
}

/** Max warnings about one item of a template. */
const mostWarnings = 20

/** The names of a value's members that are not known. Comments are no members. */
const unknownIn = (value: Readonly<Json>, known: Readonly<Json>): string[] =>
  Object.keys(value).filter((name) => !Object.hasOwn(known, name) && !isComment(name))

const capped = (warnings: Iterable<string>): string[] => [...new Set(warnings)].slice(0, mostWarnings)

/** Warnings about the members of a sent template itself that are not known. */
export function warningsOf (template: SentTemplate): string[] {
  const known = Object.keys(Template.properties).map((name) => `"${name}"`).join(', ')
  return capped(unknownIn(template, Template.properties).map((name) =>
    `${quoteName(name)} is not known and has no effect; a template has ${known}`))
}

/**
 * Reads one server of a template, which may be written as another program has it.
 * @returns its config as it may be stored here, and warnings about the members that have no effect
 * @throws InvalidInput
 */
export function readServer (name: string, value: unknown): { config: Json, warnings: string[] } {
  if (name === '') throw new errors.InvalidInput('A server needs a name: the member of "servers" that holds its config')
  if (!isObject(value)) {
    throw new errors.InvalidInput('A server is an object, its config: {"url": "…"}, or {"command": "…", "args": ["…"]}')
  }
  const { config, warnings } = adopt(value)
  const dropped = leftOut(config).map((path) => `${quoteName(path)} is not taken from a template`)
  return { config: portable(config), warnings: capped([...dropped, ...warnings]) }
}

/**
 * Reads one group of a template.
 * @returns the group, and warnings about the members that have no effect
 * @throws InvalidInput, with a message about the first member that is wrong
 */
export function readGroup (value: unknown): { group: TemplateGroup, warnings: string[] } {
  if (!isObject(value)) throw new errors.InvalidInput('A group is an object: {"name": "…", "servers": ["…"]}')
  if (value.name === undefined) throw new errors.InvalidInput('"name" is missing: a group needs one')
  if (value.servers === undefined) {
    throw new errors.InvalidInput('"servers" is missing: list the names of its servers, or [] for none')
  }
  const wrong = problemOf(TemplateGroup, value)
  if (wrong) throw new errors.InvalidInput(memberProblem(value.servers) ?? `"${wrong.path}": ${wrong.message}`)
  const group = value as TemplateGroup
  const ofMembers = group.servers.flatMap((member, at) =>
    typeof member === 'string' ? [] : unknownIn(member, GroupMember.properties).map((name) => `servers.${at}.${name}`))
  const unknown = [...unknownIn(value, TemplateGroup.properties), ...ofMembers]
  return { group, warnings: capped(unknown.map((path) => `${quoteName(path)} is not known and has no effect`)) }
}

/** A message about the first wrong member of a group; undefined: none is wrong. */
function memberProblem (servers: unknown): string | undefined {
  if (!Array.isArray(servers)) return '"servers": expected a list of names'
  for (const [at, member] of servers.entries()) {
    if (typeof member === 'string' && member !== '') continue
    const wrong = isObject(member) && typeof member.name === 'string' ? problemOf(GroupMember, member) : undefined
    if (wrong) {
      const isSelection = wrong.path !== 'name' && wrong.path !== 'alias'
      return `"servers.${at}.${wrong.path}": ${isSelection ? 'expected "all", or a list of names' : wrong.message}`
    }
    if (!isObject(member) || typeof member.name !== 'string') {
      return `"servers.${at}": expected the name of a server, or {"name": "…", "tools": ["…"]}`
    }
  }
  return undefined
}

import { isObject } from '../../../protocol/json.ts'
import { translateConfig } from '../../../schemas/foreign-config.ts'
import { anyVariablePattern } from '../../../schemas/foreign-variables.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import { ServerConfig } from '../../../schemas/server.ts'
import { GroupMember } from '../../../schemas/settings.ts'
import type { ValuesStoredByUser } from '../../../schemas/stored-by-user.ts'
import { type SentTemplate, Template, TemplateGroup } from '../../../schemas/templates.ts'
import { isCommentName, quoteName } from '../../../schemas/unknown-members.ts'
import { UpstreamOAuth } from '../../../schemas/upstream-oauth.ts'
import { errors } from '../../base/errors/index.ts'
import {
  isEmptyOrVariable, maskTokens, maskAll, maskConfig, maskOpenApi, type MaskSecret
} from '../../base/secrets/index.ts'
import { itemKinds } from '../../settings/index.ts'
import { mapExpandableTexts, createUserTextCheck } from '../../upstream/index.ts'
import { variableNamesIn, type TemplateVariables } from './variables.ts'

type Json = Record<string, unknown>

/** The config members that are specific to one gateway and its users. */
const localMembers = new Set(['owner', 'createdAt', 'storedBy', 'storedByUser', 'sharedWithUsers'])
/** The config members that a template contains. */
const portableMembers = Object.keys(ServerConfig.properties).filter((name) => !localMembers.has(name))
/** The members of `oauth` that are configuration; others are the result of a login. */
const oauthMembers = Object.keys(UpstreamOAuth.properties)
/** The members that contain no secrets. Nothing in them is replaced, not even what looks like a token. */
const membersWithoutSecrets = new Set([
  'description', ...itemKinds, 'passthroughHeaders', 'type', 'visibility', 'isolation', 'pin', 'userVariables'
])

const pick = (value: Readonly<Json>, names: readonly string[]): Json =>
  Object.fromEntries(
    names.flatMap((name) => Object.hasOwn(value, name) && value[name] !== undefined ? [[name, value[name]]] : [])
  )

/**
 * Returns the members of a config that a template contains. Default values of `visibility` and `enabled` are omitted.
 */
export function pickPortableMembers (config: Readonly<Json>): Json {
  const kept = pick(config, portableMembers)
  if (kept.visibility === 'private') delete kept.visibility
  if (kept.enabled === true) delete kept.enabled
  return isObject(kept.oauth) ? { ...kept, oauth: pick(kept.oauth, oauthMembers) } : kept
}

/** Returns the names of the local members in a config. */
const localMembersIn = (config: Readonly<Json>): string[] =>
  Object.keys(config).filter((name) => localMembers.has(name))

/** Returns the names of the environment variables that a config refers to, in the members where they are expanded. */
export function referencedVariables ({ env, headers, url, args, proxy, oauth, openapi }: Readonly<Json>): string[] {
  const { url: document, schema, security } = isObject(openapi) ? openapi : {}
  const inSchema: string[] = []
  maskOpenApi(schema, (text) => {
    inSchema.push(text)
    return text
  })
  return variableNamesIn(JSON.stringify([env, headers, url, args, proxy, oauth, document, security, inSchema]))
}

/**
 * Converts a config for a template, with its secrets replaced by variables: the values that responses mask, and values
 * that look like tokens. A `${NAME}` that a user without admin rights wrote is replaced too, since the gateway of an
 * admin who imports the template would expand it.
 * @param name the name of the server, for the names of variables
 */
export function replaceSecrets (name: string, config: Readonly<Json>, variables: TemplateVariables): Json {
  const isByUser = isWrittenByUser(config)
  const replace = variables.createReplacer(name, { isByUser })
  const { env, ...rest } = isByUser ? withoutUsersVariables(name, config, variables) : pickPortableMembers(config)
  const withoutSecrets = Object.fromEntries(Object.entries(maskConfig(rest, replace)).map(([key, value]) => {
    if (membersWithoutSecrets.has(key)) return [key, value]
    return [key, key === 'openapi' ? replaceOpenApiTokens(value, replace) : replaceTokens(value, replace)]
  }))
  return env === undefined
    ? withoutSecrets
    : { ...withoutSecrets, env: maskAll(env, variables.createReplacer(name, { canUseHint: true, isByUser })) }
}

/** Whether a user without admin rights wrote any value of a config. */
const isWrittenByUser = ({ storedByUser }: Readonly<Json>): boolean =>
  storedByUser !== undefined && storedByUser !== false

/**
 * Returns the members of a config that a template contains. Variables that a user wrote, and that this gateway does not
 * expand, are replaced by other variables, in the notations of all programs whose configs an import can read. Variables
 * `${user.…}` are kept.
 */
function withoutUsersVariables (name: string, config: Readonly<Json>, variables: TemplateVariables): Json {
  const isUnexpanded = createUserTextCheck(config.storedByUser as ValuesStoredByUser)
  const portable = pickPortableMembers(config) as ServerConfig
  return mapExpandableTexts(portable, (text, place, ...within) => isUnexpanded(place, ...within)
    ? text.replace(anyVariablePattern, (written) => isEmptyOrVariable(written) && written.startsWith('${user.')
      ? written
      : variables.replaceUserVariable(written, name, String(within[0] ?? place)))
    : text)
}

/** Like `replaceTokens`, but keeps the API description of `openapi`, whose names and texts may look like tokens. */
function replaceOpenApiTokens (value: unknown, replace: MaskSecret): unknown {
  if (!isObject(value)) return value
  const { schema, ...rest } = value
  return { ...replaceTokens(rest, replace) as Json, ...(schema === undefined ? {} : { schema }) }
}

/** Replaces what looks like a token in all strings of a value. */
function replaceTokens (value: unknown, replace: MaskSecret): unknown {
  if (typeof value === 'string') return maskTokens(value, replace)
  if (Array.isArray(value)) return value.map((each) => replaceTokens(each, replace))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaceTokens(each, replace)]))
}

/** Max number of warnings about one server or group of a template, or about the template itself. */
const maxWarnings = 20

/** Returns the names of unknown members, without comment members. */
const unknownIn = (value: Readonly<Json>, known: Readonly<Json>): string[] =>
  Object.keys(value).filter((name) => !Object.hasOwn(known, name) && !isCommentName(name))

const uniqueWarnings = (warnings: Iterable<string>): string[] => [...new Set(warnings)].slice(0, maxWarnings)

/** Returns warnings about unknown top-level members of a template. */
export function templateWarnings (template: SentTemplate): string[] {
  const known = Object.keys(Template.properties).map((name) => `"${name}"`).join(', ')
  return uniqueWarnings(unknownIn(template, Template.properties).map((name) =>
    `${quoteName(name)} is not known and has no effect; a template has ${known}`))
}

/**
 * Reads one server of a template, which may be in the format of another program.
 * @returns its config in the gateway's format, and warnings about members without effect
 * @throws InvalidInput
 */
export function parseTemplateServer (name: string, value: unknown): { config: Json, warnings: string[] } {
  if (name === '') throw new errors.InvalidInput('A server needs a name: the member of "servers" with its config')
  if (!isObject(value)) {
    throw new errors.InvalidInput('A server is an object, its config: {"url": "…"}, or {"command": "…", "args": ["…"]}')
  }
  const { config, warnings } = translateConfig(value)
  const dropped = localMembersIn(config).map((path) => `${quoteName(path)} has no effect in a template`)
  return { config: pickPortableMembers(config), warnings: uniqueWarnings([...dropped, ...warnings]) }
}

/**
 * Reads one group of a template.
 * @returns the group, and warnings about members without effect
 * @throws InvalidInput whose message describes the first invalid member
 */
export function parseTemplateGroup (value: unknown): { group: TemplateGroup, warnings: string[] } {
  if (!isObject(value)) throw new errors.InvalidInput('A group is an object: {"name": "…", "servers": ["…"]}')
  if (value.name === undefined) throw new errors.InvalidInput('"name" is missing: a group needs one')
  if (value.servers === undefined) {
    throw new errors.InvalidInput('"servers" is missing: list the names of its servers, or [] for none')
  }
  const wrong = firstSchemaProblem(TemplateGroup, value)
  if (wrong) throw new errors.InvalidInput(memberProblem(value.servers) ?? `"${wrong.path}": ${wrong.message}`)
  const group = value as TemplateGroup
  const ofMembers = group.servers.flatMap((member, at) =>
    typeof member === 'string' ? [] : unknownIn(member, GroupMember.properties).map((name) => `servers.${at}.${name}`))
  const unknown = [...unknownIn(value, TemplateGroup.properties), ...ofMembers]
  return { group, warnings: uniqueWarnings(unknown.map((path) => `${quoteName(path)} is not known and has no effect`)) }
}

/** Returns a message about the first invalid element of `servers` in a group; undefined if there is none. */
function memberProblem (servers: unknown): string | undefined {
  if (!Array.isArray(servers)) return '"servers": expected a list of names'
  for (const [at, member] of servers.entries()) {
    if (typeof member === 'string' && member !== '') continue
    const wrong = isObject(member) && typeof member.name === 'string'
      ? firstSchemaProblem(GroupMember, member)
      : undefined
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

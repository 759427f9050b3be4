import { isDeepStrictEqual } from 'node:util'
import { undecryptableReasonOf } from '../../../db/document.ts'
import type { Change, Server, Snapshot } from '../../../db/store.ts'
import { translateConfig } from '../../../schemas/foreign-config.ts'
import { schemaProblems } from '../../../schemas/problem.ts'
import { maxConfigEntries } from '../../../schemas/openapi-upstream.ts'
import { configProblem, isolationOf, ServerConfig } from '../../../schemas/server.ts'
import type { ValuesStoredByUser } from '../../../schemas/stored-by-user.ts'
import { isObject } from '../../../protocol/json.ts'
import { countValues, countWords } from '../../base/body/index.ts'
import { errors, invalidInputError } from '../../base/errors/index.ts'
import { canManage, keepsStoredRights, itemKinds, type Principal, responsibleUsersOf } from '../../settings/index.ts'
import { createTextCheck, maskConfig, unmask } from '../../base/secrets/index.ts'
import { defaultOwner, storedUsernameOf } from '../../identity/index.ts'
import { isLaunchedAlike, otherStorersOf, valuesStoredByUserAfterEdit, secretTargetsOf } from './authorship.ts'
import { checkConfigQuota, checkConfigAllowed, requireManagedServer } from '../checks.ts'
import { invalidNameProblem, withConfigDefaults } from './present.ts'
import { managementLimits } from '../limits.ts'

/** Members of a stored config, besides the owner, that an update keeps if it omits them. */
const keptMembers = ['visibility', 'enabled', ...itemKinds] as const

/**
 * Creates the change that stores a server's config as sent by a principal. Every config that the management API stores
 * or tests goes through this function.
 * @param sent the config as sent, which may contain masks in place of stored secrets
 * @param usersMayRun ALLOW_USER_STDIO
 * @throws InvalidInput, Forbidden, NoSuch, ShareUsed
 */
export function toServerChange (
  snapshot: Snapshot,
  principal: Principal,
  name: string,
  sent: Record<string, unknown>,
  usersMayRun: boolean
): Change & { entity: 'mcpServers' } {
  const stored = snapshot.servers.get(name)
  if (stored) requireManagedServer(snapshot, principal, name)
  checkValues(sent)
  // `storedBy` and `storedByUser` determine what the server may access, so the gateway sets them. A sent `storedByUser`
  // is used only if an admin adds an exported server.
  const { storedByUser: sentStoredByUser, storedBy: _, ...own } = translateConfig(sent).config
  // Checked before the masks are replaced, which takes long for many entries.
  if (hasTooManyEntries(own)) checkConfig(own)
  const { config, hasStoredSecrets } = withSecrets(own, stored)
  checkConfig(config)
  const checked = config as ServerConfig
  checkConfigAllowed(principal, checked, usersMayRun)
  // Admins may read all secrets (exports).
  const others = stored && hasStoredSecrets && !principal.isAdmin ? otherStorersOf(stored.config, principal) : []
  if (stored && others.length > 0 && !isLaunchedAlike(stored.config, checked)) {
    throw new errors.InvalidInput(
      '"config": "args", "cwd" or "env" changed, so masked secrets that others stored must be sent again'
    )
  }
  checkConfigQuota(snapshot, principal, name, checked)
  const problem = configProblem(checked)
  if (problem !== undefined) throw new errors.InvalidInput(`"config": ${problem}`)
  // After a change by a user, all values count as the user's: the change may send an admin's header to another address.
  const storedByUser = !principal.isAdmin || (stored
    ? valuesStoredByUserAfterEdit(stored.config, checked)
    : parseStoredByUser(sentStoredByUser))
  const value = {
    ...withOwner(snapshot, principal, checked, stored),
    ...(isolationOf(checked) === 'user' ? { isolation: 'user' as const } : {}),
    ...(storedByUser === undefined ? {} : { storedByUser })
  }
  // A caller who sends back an unchanged config is not recorded in `storedBy`, unless the server has lost rights that
  // it was stored with.
  const isUnchanged = stored !== undefined && keepsStoredRights(snapshot, stored) && isSame(stored.config, value)
  const { storedBy } = stored?.config ?? {}
  return {
    entity: 'mcpServers',
    key: name,
    value: isUnchanged
      ? { ...value, ...(storedBy === undefined ? {} : { storedBy }) }
      : withStorer(snapshot, principal, value, others)
  }
}

/**
 * Creates the change that enables or disables a server. An admin who enables a server that has lost rights it was
 * stored with (`keepsStoredRights`) is recorded in `storedBy`, so that the server regains them.
 * @throws InvalidInput for enabling a server with an invalid name
 */
export function toEnabledChange (
  snapshot: Snapshot, principal: Principal, server: Server, enabled: boolean
): Change & { entity: 'mcpServers' } {
  const nameProblem = invalidNameProblem(server)
  if (enabled && nameProblem !== undefined) {
    throw new errors.InvalidInput(`It cannot be enabled: ${nameProblem}; rename it (newName)`)
  }
  const isTakenOver = enabled && principal.isAdmin && !keepsStoredRights(snapshot, server)
  const config = isTakenOver ? withStorer(snapshot, principal, server.config) : server.config
  return { entity: 'mcpServers', key: server.name, value: { ...config, enabled } }
}

/** Whether two configs are equal, ignoring who stored them and when they were created. */
function isSame (one: ServerConfig, other: ServerConfig): boolean {
  const comparable = (config: ServerConfig): unknown => {
    const { createdAt: _at, storedBy: _by, ...rest } = withConfigDefaults(config)
    return JSON.parse(JSON.stringify(rest))
  }
  return isDeepStrictEqual(comparable(one), comparable(other))
}

/**
 * Returns a config with the principal's responsible users in `storedBy`: their rights limit what the server may do.
 * @param others further users, who stored secrets that the config keeps
 */
function withStorer (
  { users }: Snapshot, principal: Principal, stored: ServerConfig, others: readonly string[] = []
): ServerConfig {
  const { storedBy: _, ...config } = stored
  const storedBy = [...new Set([...others, ...responsibleUsersOf(users, principal)])]
  return storedBy.length === 0 ? config : { ...config, storedBy }
}

/**
 * Whether a server with this name exists, the principal may change it, and storing the sent config would leave it
 * unchanged.
 * @throws the errors of `toServerChange`
 */
export function isAlreadyStored (
  snapshot: Snapshot, principal: Principal, name: string, sent: Record<string, unknown>, usersMayRun: boolean
): boolean {
  const stored = snapshot.servers.get(name)
  if (!stored || !canManage(principal, stored)) return false
  const { value } = toServerChange(snapshot, principal, name, sent, usersMayRun)
  // `storedByUser` says the same in another way after an edit that changes no value.
  const withoutAuthors = (config: ServerConfig): ServerConfig => ({ ...config, storedByUser: undefined })
  return value !== undefined && isSame(withoutAuthors(stored.config), withoutAuthors(value))
}

/** Returns a sent `storedByUser`; undefined if it is absent or invalid. */
function parseStoredByUser (sent: unknown): ValuesStoredByUser {
  if (sent === true) return true
  const pointers = Array.isArray(sent) ? sent.filter((each) => typeof each === 'string') : []
  return pointers.length === 0 ? undefined : pointers
}

/** Checks that a config matches its schema. @throws InvalidInput */
function checkConfig (config: unknown): void {
  const findings = schemaProblems(ServerConfig, config)
    .map(({ path, message }) => ({ path: ['config', path].filter((part) => part !== '').join('.'), message }))
  if (findings.length > 0) throw invalidInputError(findings)
}

/** Limits the number of values and words in a config, since unknown members are stored too. @throws InvalidInput */
function checkValues ({ openapi, ...config }: Record<string, unknown>): void {
  const { schema: _description, ...others } = isObject(openapi) ? openapi : {}
  if (countValues([config, others], managementLimits.configValues) > managementLimits.configValues) {
    throw new errors.InvalidInput(`"config" has more than ${managementLimits.configValues} values`)
  }
  // Each word may be a secret that is searched for in texts to redact, except in descriptions and overrides.
  const {
    tools: _tools, prompts: _prompts, resources: _resources, skills: _skills, description: _text, ...secrets
  } = config
  if (countWords([secrets, others], managementLimits.configWords) > managementLimits.configWords) {
    throw new errors.InvalidInput(
      `The strings in "config" have more than ${managementLimits.configWords} words and URL parameters`
    )
  }
}

/** Whether any member has more than `maxConfigEntries` entries. */
const hasTooManyEntries = (config: Record<string, unknown>): boolean =>
  Object.values(config).some((value) =>
    typeof value === 'object' && value !== null && Object.keys(value).length > maxConfigEntries)

/**
 * Returns a sent config with owner, visibility and creation time, and with the stored values of `keptMembers` that it
 * omits.
 * @throws Forbidden if a user without admin rights sets another owner, InvalidInput for an unknown owner
 */
function withOwner (
  snapshot: Snapshot, principal: Principal, sent: ServerConfig, stored: Server | undefined
): ServerConfig {
  const caller = principal.username !== undefined && snapshot.users.has(principal.username)
    ? principal.username
    : defaultOwner
  const before = withConfigDefaults(stored?.config ?? { owner: caller })
  const isKept = (key: typeof keptMembers[number]): boolean =>
    sent[key] === undefined && stored?.config[key] !== undefined
  const config: ServerConfig = {
    ...sent,
    ...Object.fromEntries(keptMembers.filter(isKept).map((key) => [key, stored?.config[key]])),
    createdAt: stored ? stored.config.createdAt : new Date().toISOString()
  }
  // The API shows an absent `enabled` as true, so sending back true is not a change.
  if (stored && sent.enabled === true && stored.config.enabled === undefined) delete config.enabled
  const keepsOwner = sent.owner === undefined || sent.owner === before.owner
  const owner = keepsOwner ? before.owner : storedUsernameOf(snapshot.users, sent.owner ?? '')
  if (!principal.isAdmin && owner !== before.owner) {
    throw new errors.Forbidden('Only an admin may set a server\'s owner')
  }
  // Otherwise a user created later with that name would own the server.
  if (owner !== defaultOwner && owner !== before.owner && !snapshot.users.has(owner)) {
    throw new errors.InvalidInput(`"config.owner": there is no user named ${JSON.stringify(owner)}`)
  }
  config.owner = owner
  if (sent.sharedWithUsers !== undefined) {
    config.sharedWithUsers = sent.sharedWithUsers
      .filter((name) => name.trim() !== '')
      .map((name) => storedUsernameOf(snapshot.users, name))
  }
  config.visibility ??= before.visibility
  return config
}

/**
 * Replaces masks in a sent config by the stored secrets.
 * @returns `config`: the config with secrets; `hasStoredSecrets`: whether a mask was replaced
 * @throws InvalidInput for a mask without a stored secret, or if the secrets would be sent to another target
 */
function withSecrets (
  sent: Record<string, unknown>, stored: Server | undefined
): { config: unknown, hasStoredSecrets: boolean } {
  const locked = stored && undecryptableReasonOf(stored.config)
  const { value: config, unknown: found } = locked === undefined
    ? unmask(sent, stored?.config, stored && maskConfig(stored.config))
    : unmask(sent, undefined, undefined)
  const isText = found.length > 0 ? createTextCheck(sent) : undefined
  const unknown = found.filter((path) => !isText?.(path))
  if (unknown.length > 0) {
    throw new errors.InvalidInput(
      `"config.${unknown.join('", "config.')}": this is a mask, not a value; send the secret itself` +
      (locked === undefined ? '' : `, since the stored one cannot be decrypted. ${locked}`)
    )
  }
  const hasStoredSecrets = stored !== undefined && config !== sent && JSON.stringify(sent) !== JSON.stringify(config)
  if (hasStoredSecrets && secretTargetsOf(config) !== secretTargetsOf(stored.config)) {
    throw new errors.InvalidInput('"config": the address or command changed, so masked secrets must be sent again')
  }
  return { config, hasStoredSecrets }
}

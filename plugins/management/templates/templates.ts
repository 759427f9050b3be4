import { setImmediate as nextTurn } from 'node:timers/promises'
import { undecryptableReasonOf } from '../../../db/document.ts'
import { orderedEntries, createOrderedObject } from '../../../db/order.ts'
import { isObject } from '../../../protocol/json.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import type {
  ImportDetail, TemplateImportResult, NewTemplate, SentTemplate, Template, TemplateGroup
} from '../../../schemas/templates.ts'
import { quoteName } from '../../../schemas/unknown-members.ts'
import { errors } from '../../base/errors/index.ts'
import { canManage, type Principal, type Settings, withCurrentRights } from '../../settings/index.ts'
import type { ProcessEnvironment } from '../../upstream/index.ts'
import type { Bundles } from '../bundles/bundles.ts'
import type { Groups, ShownGroup } from '../groups/groups.ts'
import { refusalMessage } from '../servers/add-many.ts'
import type { Servers } from '../servers/servers.ts'
import {
  pickPortableMembers, parseTemplateGroup, parseTemplateServer, referencedVariables, templateWarnings, replaceSecrets
} from './config.ts'
import { TemplateVariables } from './variables.ts'
import { identityLimits } from '../../identity/index.ts'

const version = '1.0'

/** An exported template. `message`: what it omits. */
interface ExportedTemplate { data: Template, message?: string }

/** The result of an import, with warnings about the template as a whole. */
interface ImportResult { data: TemplateImportResult, message: string, warnings: string[], outcome?: 'partial' }

const nameOf = (member: string | GroupMember): string => typeof member === 'string' ? member : member.name

/** Exports and imports templates: servers and groups without owners and secrets, for another gateway. */
export class Templates {
  readonly #settings: Settings
  readonly #servers: Servers
  readonly #groups: Groups
  readonly #environment: ProcessEnvironment
  readonly #bundles: Pick<Bundles, 'bundleNamesIn' | 'missingBundleNamesIn'>

  /** @param environment the variables that configs can refer to */
  constructor (
    settings: Settings,
    servers: Servers,
    groups: Groups,
    environment: ProcessEnvironment,
    bundles: Pick<Bundles, 'bundleNamesIn' | 'missingBundleNamesIn'>
  ) {
    this.#settings = settings
    this.#servers = servers
    this.#groups = groups
    this.#environment = environment
    this.#bundles = bundles
  }

  /**
   * Creates a template of the named servers and groups, which the principal must manage; if no names are sent, of
   * everything that the principal manages. The groups' servers are included if the principal manages them.
   * @throws NoSuch, Forbidden, SecretsLocked
   */
  async export (
    principal: Principal, { name, description, groupIds, serverNames }: NewTemplate
  ): Promise<ExportedTemplate> {
    const isEverything = groupIds === undefined && serverNames === undefined
    const groups = isEverything
      ? this.#managedGroups(principal)
      : (groupIds ?? []).map((id) => lookUpNamed('group', id, () => this.#groups.getManaged(principal, id)))
    const chosen = new Set(isEverything ? this.#managedServerNames(principal) : serverNames)
    const omitted = new Set<string>()
    for (const member of groups.flatMap(({ servers }) => servers.map(nameOf))) {
      const server = this.#settings.current.servers.get(member)
      if (server && canManage(principal, server)) chosen.add(member)
      else omitted.add(member)
    }
    const configs = [...chosen].map((each) => {
      const config = lookUpNamed('server', each, () => this.#servers.getManagedConfig(principal, each))
      return [each, withCurrentRights(this.#settings.current, config)] as const
    })
    const locked = configs.filter(([, config]) =>
      undecryptableReasonOf(config) !== undefined).map(([each]) => JSON.stringify(each))
    if (locked.length > 0) throw new errors.SecretsLocked(locked.slice(0, 20).join(', '))
    const variables =
      new TemplateVariables(
        configs.flatMap(([, config]) => referencedVariables(pickPortableMembers(config))), this.#environment
      )
    const withoutSecrets: Array<[name: string, config: Record<string, unknown>]> = []
    for (const [each, config] of configs) {
      withoutSecrets.push([each, replaceSecrets(each, config, variables)])
      // Yields to the event loop, since a server may have thousands of secrets.
      await nextTurn()
    }
    const data: Template = {
      version,
      name,
      ...(description === undefined ? {} : { description }),
      createdAt: new Date().toISOString(),
      servers: createOrderedObject(withoutSecrets),
      groups: uniqueGroups(groups).map((group) => ({
        name: group.name,
        ...(group.description === undefined ? {} : { description: group.description }),
        servers: group.servers.filter((member) => !omitted.has(nameOf(member)))
      })),
      requiredEnvVars: [...new Set(withoutSecrets.flatMap(([, config]) => referencedVariables(config)))].sort()
    }
    const message = remarksOn([...omitted], this.#bundles.bundleNamesIn(configs.map(([, config]) => config)))
    return { data, ...(message !== '' && { message }) }
  }

  /** Creates a template of one group. @param name by default, the name of the group @throws the errors of `export` */
  async exportGroup (principal: Principal, idOrName: string, name?: string): Promise<ExportedTemplate> {
    const { id, name: groupName, description } = this.#groups.getManaged(principal, idOrName)
    return await this.export(principal, { name: name ?? groupName, description, groupIds: [id] })
  }

  /**
   * Adds the servers and groups of a template with the checks of `POST /api/servers` and `POST /api/groups`. Existing
   * names are skipped.
   * @returns the result for each server and group; the message names the environment variables that new servers need
   * @throws InvalidInput for a template of another version or with too many entries
   */
  async import (principal: Principal, sent: SentTemplate): Promise<ImportResult> {
    const { version: given, servers = {}, groups = [] } = sent
    if (given !== version) {
      throw new errors.InvalidInput(
        `"version": ${JSON.stringify(given)} is not supported; templates have version "${version}"`
      )
    }
    const entries = orderedEntries(servers)
    if (Math.max(entries.length, groups.length) > identityLimits.templates.entries) {
      throw new errors.InvalidInput(
        `A template may have at most ${identityLimits.templates.entries} servers and as many groups; import it in parts`
      )
    }
    const details = await this.#importServers(principal, entries)
    const created = new Set(details.flatMap(({ action, name }) => action === 'created' ? [name] : []))
    for (const [at, group] of groups.entries()) details.push(await this.#importGroup(principal, group, at))
    const count = (type: ImportDetail['type'], action: ImportDetail['action']): number =>
      details.filter((each) => each.type === type && each.action === action).length
    const variables =
      entries.flatMap(([name, config]) => created.has(name) && isObject(config) ? referencedVariables(config) : [])
    const data: TemplateImportResult = {
      serversCreated: count('server', 'created'),
      serversSkipped: count('server', 'skipped'),
      groupsCreated: count('group', 'created'),
      groupsSkipped: count('group', 'skipped'),
      details
    }
    const isPartial = details.some(({ action }) => action === 'failed')
    return {
      data,
      message: importSummary(data, variables),
      warnings: templateWarnings(sent),
      ...(isPartial && { outcome: 'partial' })
    }
  }

  async #importServers (principal: Principal, entries: ReadonlyArray<[string, unknown]>): Promise<ImportDetail[]> {
    const known = this.#settings.current.servers
    const details = new Map<string, ImportDetail>()
    const read = entries.flatMap(([name, value]) => {
      try {
        if (!known.has(name)) return [{ name, ...parseTemplateServer(name, value) }]
        details.set(name, {
          type: 'server',
          name,
          action: 'skipped',
          message: 'There is already a server with this name'
        })
      } catch (error) {
        details.set(name, { type: 'server', name, action: 'failed', message: refusalMessage(error) })
      }
      return []
    })
    const outcomes = read.length === 0
      ? []
      : await this.#servers.createMany(principal, read.map(({ name, config }) => ({ name, config })))
    for (const [at, { name, success, message, warnings = [] }] of outcomes.entries()) {
      const { warnings: remarks = [], config = {} } = read[at] ?? {}
      const missing = success ? await this.#bundles.missingBundleNamesIn(config) : []
      const detail = success
        ? warningsMessage([...remarks, ...warnings, ...missing.map(missingBundleRemark)])
        : { message }
      details.set(name, { type: 'server', name, action: success ? 'created' : 'failed', ...detail })
    }
    return entries.flatMap(([name]) => details.get(name) ?? [])
  }

  /** Adds a group of a template. @param at the group's index, for messages about a group without a name */
  async #importGroup (principal: Principal, sent: unknown, at: number): Promise<ImportDetail> {
    const name = isObject(sent) && typeof sent.name === 'string' ? sent.name : ''
    const isKnown = [...this.#settings.current.groups.values()].some((group) => group.name === name)
    if (isKnown) return { type: 'group', name, action: 'skipped', message: 'There is already a group with this name' }
    try {
      const { group, warnings } = parseTemplateGroup(sent)
      const created = await this.#groups.create(principal, pickGroup(group))
      return { type: 'group', name, action: 'created', ...warningsMessage([...warnings, ...created.warnings]) }
    } catch (error) {
      const message = refusalMessage(error)
      return { type: 'group', name, action: 'failed', message: name === '' ? `groups.${at}: ${message}` : message }
    }
  }

  #managedServerNames (principal: Principal): string[] {
    return [...this.#settings.current.servers.values()].filter((server) => canManage(principal, server))
      .map(({ name }) => name)
  }

  #managedGroups (principal: Principal): ShownGroup[] {
    return this.#groups.listWithSelectors(principal).filter(({ owner }) =>
      principal.isAdmin || owner === principal.username)
  }
}

const pickGroup = ({ name, description, servers }: TemplateGroup): TemplateGroup => ({ name, description, servers })

/** Returns warnings as a message, without duplicates. */
const warningsMessage = (warnings: readonly string[]): { message?: string } =>
  warnings.length === 0 ? {} : { message: [...new Set(warnings)].join('. ') }

const quoteNames = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(', ')

/**
 * Returns remarks on parts that a template omits: members of groups, and bundles of servers. Empty if nothing is
 * omitted.
 */
const remarksOn = (omitted: readonly string[], bundles: readonly string[]): string => [
  ...(omitted.length === 0 ? [] : [`Omitted, since you do not manage them: ${quoteNames(omitted)}`]),
  ...(bundles.length === 0
    ? []
    : ['A template does not contain bundles, and configs refer to their folder on this gateway: upload ' +
      `${quoteNames(bundles)} to the other gateway, and set the folder`])
].join('. ')

const missingBundleRemark = (name: string): string =>
  `The bundle ${JSON.stringify(name)} does not exist on this gateway: upload it, and set its folder in this config`

/** Returns the summary of an import. @param variables environment variables that the new servers need */
function importSummary ({ details }: TemplateImportResult, variables: readonly string[]): string {
  const has = (action: ImportDetail['action']): boolean => details.some((each) => each.action === action)
  const cause = '`details` says why'
  const result = has('created')
    ? has('failed') ? `A part of the template was imported: ${cause} the rest was not` : 'The template was imported'
    : has('failed')
      ? `Nothing of the template was imported: ${cause}`
      : has('skipped')
        ? 'Nothing was imported: all names in the template already exist'
        : 'The template is empty: nothing was imported'
  if (variables.length === 0) return result
  const names = [...new Set(variables)].sort().join(', ')
  return `${result}. Its servers need these environment variables of the gateway, which are available to admins' ` +
    `servers only: ${names}`
}

/** Calls `find` for one of several names. @throws the errors of `find`, with the name in the message of Forbidden */
function lookUpNamed<Value> (kind: 'server' | 'group', name: string, find: () => Value): Value {
  try {
    return find()
  } catch (error) {
    if (error instanceof errors.Forbidden) throw new errors.Forbidden(`${error.message}: ${quoteName(name)}`)
    throw error
  }
}

const uniqueGroups = (groups: readonly ShownGroup[]): ShownGroup[] => [
  ...new Map(groups.map((group) => [group.id, group])).values()
]

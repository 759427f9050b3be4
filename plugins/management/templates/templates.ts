import { isObject } from '../../../protocol/json.ts'
import type { Pause } from '../../../protocol/large-message.ts'
import { lockOf } from '../../../db/document.ts'
import { orderedEntries, orderedObject } from '../../../db/order.ts'
import type { Imported, ImportDetail, NewTemplate, SentTemplate, Template, TemplateGroup } from '../../../schemas/templates.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import { quoteName } from '../../../schemas/unknown-members.ts'
import { canManage, type Principal, type Settings, withPresentRights } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import type { Groups, ShownGroup } from '../groups/groups.ts'
import { limits, turns } from '../../base/limits/index.ts'
import type { Servers } from '../servers/servers.ts'
import type { ProcessEnvironment } from '../../upstream/index.ts'
import { portable, referenced, withoutSecrets } from './config.ts'
import { readGroup, readServer, warningsOf } from './read.ts'
import { TemplateVariables } from './variables.ts'

const version = '1.0'

/** A template, and the names of members of groups that the principal does not manage: they are left out. */
interface Exported { template: Template, leftOut: string[] }

const nameOf = (member: string | GroupMember): string => typeof member === 'string' ? member : member.name

/** Templates: servers and groups without owners and secrets, to be taken to another gateway (DECISIONS §13). */
export class Templates {
  readonly #settings: Settings
  readonly #servers: Servers
  readonly #groups: Groups
  readonly #environment: ProcessEnvironment

  /** @param environment the one that variables of configs are filled in from */
  constructor (settings: Settings, servers: Servers, groups: Groups, environment: ProcessEnvironment) {
    this.#settings = settings
    this.#servers = servers
    this.#groups = groups
    this.#environment = environment
  }

  /**
   * Makes a template of servers and groups that the principal manages; with neither named, of all of them. Groups bring their servers.
   * @param owner in whose turns it is made (`ownerOf`): servers may have thousands of secrets
   * @throws NoSuch, Forbidden, SecretsLocked, ShareError
   */
  async export (principal: Principal, owner: string, { name, description, groupIds, serverNames }: NewTemplate): Promise<Exported> {
    const isEverything = groupIds === undefined && serverNames === undefined
    const groups = isEverything
      ? this.#ownGroups(principal)
      : (groupIds ?? []).map((id) => lookedUp('group', id, () => this.#groups.managed(principal, id)))
    const chosen = new Set(isEverything ? this.#ownServers(principal) : serverNames)
    const leftOut = new Set<string>()
    for (const member of groups.flatMap(({ servers }) => servers.map(nameOf))) {
      const server = this.#settings.current.servers.get(member)
      if (server && canManage(principal, server)) chosen.add(member)
      else leftOut.add(member)
    }
    const configs = [...chosen].map((each) => {
      const config = lookedUp('server', each, () => this.#servers.managed(principal, each))
      return [each, withPresentRights(this.#settings.current, config)] as const
    })
    const locked = configs.filter(([, config]) => lockOf(config) !== undefined).map(([each]) => JSON.stringify(each))
    if (locked.length > 0) throw new errors.SecretsLocked(locked.slice(0, 20).join(', '))
    const { covered, required } = await turns.run(owner, async (pause) => {
      const named = await inSteps(configs, ([, config]) => referenced(portable(config)), pause)
      const variables = new TemplateVariables(named.flat(), this.#environment)
      const covered = await inSteps(configs, ([each, config]) => [each, withoutSecrets(each, config, variables)] as const, pause)
      return { covered, required: await inSteps(covered, ([, config]) => referenced(config), pause) }
    })
    const template: Template = {
      version,
      name,
      ...(description === undefined ? {} : { description }),
      createdAt: new Date().toISOString(),
      servers: orderedObject(covered),
      groups: unique(groups).map((group) => ({
        name: group.name,
        ...(group.description === undefined ? {} : { description: group.description }),
        servers: group.servers.filter((member) => !leftOut.has(nameOf(member)))
      })),
      requiredEnvVars: [...new Set(required.flat())].sort()
    }
    return { template, leftOut: [...leftOut] }
  }

  /** The same of one group. @param name of the template; by default that of the group */
  async exportGroup (principal: Principal, owner: string, idOrName: string, name?: string): Promise<Exported> {
    const { id, name: groupName, description } = this.#groups.managed(principal, idOrName)
    return await this.export(principal, owner, { name: name ?? groupName, description, groupIds: [id] })
  }

  /**
   * Adds the servers and groups of a template, each as `POST /api/servers` and `POST /api/groups` would; existing names are skipped.
   * @returns what became of each, the variables that the new servers need, and warnings about the template itself
   * @throws InvalidInput for a template of another version, or with too many entries
   */
  async import (principal: Principal, sent: SentTemplate): Promise<Imported & { variables: string[], warnings: string[] }> {
    const { version: given, servers = {}, groups = [] } = sent
    if (given !== version) {
      throw new errors.InvalidInput(`"version": ${JSON.stringify(given)} is not known here; templates have version "${version}"`)
    }
    const entries = orderedEntries(servers)
    if (Math.max(entries.length, groups.length) > limits.templates.entries) {
      throw new errors.InvalidInput(`A template may have ${limits.templates.entries} servers and as many groups; import it in parts`)
    }
    const details = await this.#importServers(principal, entries)
    const created = new Set(details.flatMap(({ action, name }) => action === 'created' ? [name] : []))
    for (const [at, group] of groups.entries()) details.push(await this.#importGroup(principal, group, at))
    const count = (type: ImportDetail['type'], action: ImportDetail['action']): number =>
      details.filter((each) => each.type === type && each.action === action).length
    return {
      serversCreated: count('server', 'created'),
      serversSkipped: count('server', 'skipped'),
      groupsCreated: count('group', 'created'),
      groupsSkipped: count('group', 'skipped'),
      details,
      variables: [...new Set(entries.flatMap(([name, config]) => created.has(name) && isObject(config) ? referenced(config) : []))].sort(),
      warnings: warningsOf(sent)
    }
  }

  async #importServers (principal: Principal, entries: ReadonlyArray<[string, unknown]>): Promise<ImportDetail[]> {
    const known = this.#settings.current.servers
    const details = new Map<string, ImportDetail>()
    const read = entries.flatMap(([name, value]) => {
      try {
        if (!known.has(name)) return [{ name, ...readServer(name, value) }]
        details.set(name, { type: 'server', name, action: 'skipped', message: 'There is a server of this name already' })
      } catch (error) {
        details.set(name, { type: 'server', name, action: 'failed', message: refusalOf(error) })
      }
      return []
    })
    const outcomes = read.length === 0 ? [] : await this.#servers.createMany(principal, read.map(({ name, config }) => ({ name, config })))
    for (const [at, { name, success, message, warnings = [] }] of outcomes.entries()) {
      const detail = success ? told([...read[at]?.warnings ?? [], ...warnings]) : { message }
      details.set(name, { type: 'server', name, action: success ? 'created' : 'failed', ...detail })
    }
    return entries.flatMap(([name]) => details.get(name) ?? [])
  }

  /** @param sent one of the template's groups @param at its place among them, which names one without a name */
  async #importGroup (principal: Principal, sent: unknown, at: number): Promise<ImportDetail> {
    const name = isObject(sent) && typeof sent.name === 'string' ? sent.name : ''
    const isKnown = [...this.#settings.current.groups.values()].some((group) => group.name === name)
    if (isKnown) return { type: 'group', name, action: 'skipped', message: 'There is a group of this name already' }
    try {
      const { group, warnings } = readGroup(sent)
      const created = await this.#groups.create(principal, pickGroup(group))
      return { type: 'group', name, action: 'created', ...told([...warnings, ...created.warnings]) }
    } catch (error) {
      const message = refusalOf(error)
      return { type: 'group', name, action: 'failed', message: name === '' ? `groups.${at}: ${message}` : message }
    }
  }

  #ownServers (principal: Principal): string[] {
    return [...this.#settings.current.servers.values()].filter((server) => canManage(principal, server)).map(({ name }) => name)
  }

  #ownGroups (principal: Principal): ShownGroup[] {
    return this.#groups.all(principal).filter(({ owner }) => principal.isAdmin || owner === principal.username)
  }
}

const pickGroup = ({ name, description, servers }: TemplateGroup): TemplateGroup => ({ name, description, servers })

/** The warnings about an item that was added, each once. */
const told = (warnings: readonly string[]): { message?: string } =>
  warnings.length === 0 ? {} : { message: [...new Set(warnings)].join('. ') }

/** The reason why an item cannot be added. @throws the error, when it is none of that item alone */
function refusalOf (error: unknown): string {
  const isRefusal = [errors.InvalidInput, errors.LimitReached, errors.ShareUsed].some((kind) => error instanceof kind)
  if (!isRefusal || !(error instanceof Error)) throw error
  return error.message
}

/** Time after which a step gives way, in ms. */
const stepTime = 1

/** Maps a list, and gives way to others after each `stepTime`. @param pause called between two steps */
async function inSteps<Item, Result> (items: readonly Item[], work: (item: Item) => Result, pause: Pause): Promise<Result[]> {
  const results: Result[] = []
  let begun = performance.now()
  for (const item of items) {
    results.push(work(item))
    if (performance.now() - begun < stepTime) continue
    await pause()
    begun = performance.now()
  }
  return results
}

/** Looks up one of several names, which a refusal then names. @throws as `find` */
function lookedUp<Value> (kind: 'server' | 'group', name: string, find: () => Value): Value {
  try {
    return find()
  } catch (error) {
    if (error instanceof errors.Forbidden) throw new errors.Forbidden(`${error.message}: ${quoteName(name)}`)
    throw error
  }
}

const unique = (groups: readonly ShownGroup[]): ShownGroup[] => [...new Map(groups.map((group) => [group.id, group])).values()]

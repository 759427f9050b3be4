import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { jsonLength } from '../../../db/json-size.ts'
import type { Change, Server, Snapshot } from '../../../db/store.ts'
import { isObject } from '../../../protocol/json.ts'
import { translateConfig } from '../../../schemas/foreign-config.ts'
import { isolationOf, type ServerConfig } from '../../../schemas/server.ts'
import { errors } from '../../base/errors/index.ts'
import { Shares } from '../../base/limits/index.ts'
import type { Outbound } from '../../base/outbound/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { changesForKeyScopeRemoval } from '../../identity/index.ts'
import {
  canManage, canSee, type ItemKind, makeView, type OverrideChange, type Principal, type Settings
} from '../../settings/index.ts'
import { type Upstreams, type UserValues, upstreamLimits } from '../../upstream/index.ts'
import { groupChangesForServerRemoval } from '../groups/groups.ts'
import {
  checkServerOrGroupQuota, checkConfigAllowed, checkServerName, requireManagedServer, nameAndSharingWarnings,
  requireVisibleServer
} from '../checks.ts'
import { planAdditions, batchResultOf, type BatchResult, type AddOutcome, type SentServers } from './add-many.ts'
import {
  connectionStateOf, type PresentedItem, type PresentedServer, refusalToConnect, ServerLogins, toServerRecord
} from './present.ts'
import { renameWarnings, renameWithDefinitions } from './rename.ts'
import { findItemToOverride, overrideItem } from './overrides.ts'
import { type ServerTestOutcome, serverTestMessage, toServerTestOutcome } from './server-test.ts'
import { toEnabledChange, toServerChange } from './to-store.ts'

/** The name of a server that is tested without a name. It is not a valid name for a stored server. */
const unnamedTestServer = '$test'
/** Max time to wait for a server's processes to end, in ms. */
const endTimeout = 5_000

type ServersDeps =
  Pick<FastifyInstance, 'settings' | 'upstreams' | 'gateway' | 'outbound' | 'definitions' | 'userValues'>

/** Manages the configured servers for the management API. */
export class Servers {
  readonly #settings: Settings
  readonly #upstreams: Upstreams
  readonly #gateway: Gateway
  readonly #usersMayRun: boolean
  readonly #outbound: Outbound
  readonly #logins: ServerLogins
  readonly #definitions: FastifyInstance['definitions']
  readonly #values: UserValues
  readonly #tests = new Shares(upstreamLimits.serverTests.places, 'tests of servers')

  /** @param usersMayRun ALLOW_USER_STDIO */
  constructor (
    { settings, upstreams, gateway, outbound, definitions, userValues }: ServersDeps, usersMayRun: boolean
  ) {
    this.#values = userValues
    this.#settings = settings
    this.#definitions = definitions
    this.#upstreams = upstreams
    this.#gateway = gateway
    this.#usersMayRun = usersMayRun
    this.#outbound = outbound
    this.#logins = new ServerLogins(upstreams)
  }

  /** Like `list`, with the login URLs of servers at which the principal must log in. */
  async listWithLoginUrls (principal: Principal): Promise<PresentedServer[]> {
    const seen = this.#visible(principal)
    await Promise.all(seen.map(async (server) => { await this.#logins.prepareLogin(principal, server) }))
    return this.list(principal)
  }

  /** Like `get`, with the login URL if the principal must log in. @throws NoSuch */
  async getWithLoginUrl (principal: Principal, name: string): Promise<PresentedServer> {
    await this.#logins.prepareLogin(principal, requireVisibleServer(this.#settings.current, principal, name))
    return this.get(principal, name)
  }

  /**
   * Checks that the principal may end its login at a server. A login shared by all users can be ended only by users who
   * manage the server.
   * @throws NoSuch, Forbidden
   */
  assertCanLogOut (principal: Principal, name: string): void {
    const snapshot = this.#settings.current
    const { config } = requireVisibleServer(snapshot, principal, name)
    if (isolationOf(config) !== 'user') requireManagedServer(snapshot, principal, name)
  }

  /** Ends the principal's login at a server. @returns whether there was one @throws the errors of `assertCanLogOut` */
  async logOut (principal: Principal, name: string): Promise<boolean> {
    this.assertCanLogOut(principal, name)
    return await this.#logins.endLogin(principal, requireVisibleServer(this.#settings.current, principal, name))
  }

  /** Returns the servers that the principal may see. */
  list (principal: Principal): PresentedServer[] {
    return this.#visible(principal).map((server) => this.#toRecord(principal, server))
  }

  /** Returns the names of the servers that the principal may see, without the cost of their records. */
  names (principal: Principal): string[] { return this.#visible(principal).map(({ name }) => name) }

  #visible (principal: Principal): Server[] {
    const snapshot = this.#settings.current
    return [...snapshot.servers.values()].filter((server) => canSee(snapshot, principal, server, 'public'))
  }

  /**
   * Returns the servers that the principal may see, and their configs by name. The configs are in a Map, since an
   * object would move names like `7` to the front.
   */
  listWithConfigs (
    principal: Principal
  ): { servers: PresentedServer[], mcpServers: Map<string, Record<string, unknown>> } {
    const servers = this.list(principal)
    return { servers, mcpServers: new Map(servers.map(({ name, config }) => [name, config])) }
  }

  /** Returns a server. @throws NoSuch if it does not exist, or the principal may not see it */
  get (principal: Principal, name: string): PresentedServer {
    return this.#toRecord(principal, requireVisibleServer(this.#settings.current, principal, name))
  }

  /** Adds a server; it connects in the background. @throws InvalidInput, Forbidden, ShareUsed */
  async create (principal: Principal, name: string, config: Record<string, unknown>): Promise<PresentedServer> {
    await this.#settings.change((snapshot) => {
      checkServerName(snapshot, principal, name, 'name')
      checkServerOrGroupQuota(snapshot, principal, 'server')
      return [toServerChange(snapshot, principal, name, config, this.#usersMayRun)]
    }, principal)
    return this.get(principal, name)
  }

  /**
   * Connects to a server once, without storing it, and returns its items or why it does not connect. The config is
   * checked as if it were stored.
   * @param name a stored server, whose masked secrets `config` may contain; undefined for a new server
   * @param signal aborted when the caller disconnects
   * @returns the result, and a message with the next step
   * @throws NoSuch, InvalidInput, Forbidden, ShareUsed, ShareError
   */
  async test (
    principal: Principal, name: string | undefined, config: Record<string, unknown>, signal: AbortSignal
  ): Promise<{ data: ServerTestOutcome, message: string }> {
    const snapshot = this.#settings.current
    const isStored = name !== undefined && snapshot.servers.has(name)
    if (name !== undefined && !isStored) checkServerName(snapshot, principal, name, 'name')
    if (!isStored) checkServerOrGroupQuota(snapshot, principal, 'server')
    const { value } = toServerChange(snapshot, principal, name ?? unnamedTestServer, config, this.#usersMayRun)
    if (value === undefined) throw new errors.InvalidInput('"config" is missing')
    const release = this.#tests.take(principal.user)
    try {
      const seen = await this.#upstreams.probe(name ?? unnamedTestServer, value, signal)
      const data = toServerTestOutcome(seen, value, [...translateConfig(config).warnings])
      return { data, message: serverTestMessage(data, name) }
    } finally {
      release()
    }
  }

  /**
   * Replaces a server's config. Visibility, `enabled`, owner and overrides are kept if the new config omits them.
   * @param newName the new name of the server, which also replaces the former one in groups, keys, guards and quotas
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async update (
    principal: Principal, name: string, config: Record<string, unknown>, newName?: string
  ): Promise<PresentedServer> {
    const renamed = newName === undefined || newName === name ? undefined : newName
    const changesIn = (snapshot: Snapshot): Change[] => {
      requireManagedServer(snapshot, principal, name)
      if (renamed !== undefined) checkServerName(snapshot, principal, renamed, 'newName', name)
      const change = toServerChange(snapshot, principal, name, config, this.#usersMayRun)
      return [renamed === undefined ? change : { ...change, rename: renamed }]
    }
    const change = async (): Promise<void> => { await this.#settings.change(changesIn, principal) }
    const renaming = { name, newName: renamed, check: changesIn }
    const store = async (): Promise<void> => {
      await renameWithDefinitions(this.#definitions, this.#settings, renaming, change)
    }
    if (renamed === undefined) await store()
    else if (changesIn(this.#settings.current).length > 0) {
      const former = requireManagedServer(this.#settings.current, principal, name)
      await this.#values.renameServer(former, renamed, this.#settings, store)
    }
    return this.get(principal, newName ?? name)
  }

  /**
   * Returns warnings about a stored server, as sentences for a principal that manages it. No host name is looked up, so
   * a forbidden address may be noticed only when the server connects; the server's record then says so.
   * @param sent the config as sent, which may have members of other programs
   * @param former the name before the server was renamed
   */
  warningsAbout (principal: Principal, name: string, sent: Record<string, unknown> = {}, former = name): string[] {
    const snapshot = this.#settings.current
    const refusal = refusalToConnect(snapshot, name, this.#outbound)
    const ofName = nameAndSharingWarnings(snapshot, principal, name)
    const ofFormer = former === name ? [] : renameWarnings(principal, snapshot, former)
    return [...translateConfig(sent).warnings, refusal, ...ofName, ...ofFormer].filter((each) => each !== undefined)
  }

  /**
   * Checks that the principal may override an item.
   * @throws the errors of `findItemToOverride`
   */
  assertCanManageItem (principal: Principal, name: string, kind: ItemKind, key: string): void {
    findItemToOverride(this.#settings.current, this.#gateway, principal, { name, kind, key })
  }

  /** Returns the config of a server that the principal may change, with its secrets. @throws NoSuch, Forbidden */
  getManagedConfig (principal: Principal, name: string): ServerConfig {
    return requireManagedServer(this.#settings.current, principal, name).config
  }

  /** Checks that the principal may change a server. @throws NoSuch, Forbidden */
  assertCanManage (principal: Principal, name: string): void {
    requireManagedServer(this.#settings.current, principal, name)
  }

  /** Removes a server, also from groups, and from keys that are limited to it. @throws NoSuch, Forbidden */
  async remove (principal: Principal, name: string): Promise<void> {
    await this.#settings.change((snapshot) => {
      requireManagedServer(snapshot, principal, name)
      return [
        { entity: 'mcpServers', key: name, value: undefined },
        ...groupChangesForServerRemoval(snapshot, name),
        ...changesForKeyScopeRemoval(snapshot, 'allowedServers', [name])
      ]
    }, principal)
    await this.#waitUntilEnded(name)
  }

  /**
   * Enables or disables a server (`toEnabledChange`).
   * @throws NoSuch, Forbidden, InvalidInput for enabling a server with an invalid name, ShareError
   */
  async setEnabled (principal: Principal, name: string, enabled: boolean): Promise<PresentedServer> {
    this.#settings.chargeLargeChange(principal, jsonLength(this.getManagedConfig(principal, name)))
    await this.#settings.change((snapshot) => {
      const server = requireManagedServer(snapshot, principal, name)
      checkConfigAllowed(principal, server.config, this.#usersMayRun)
      return [toEnabledChange(snapshot, principal, server, enabled)]
    }, principal)
    if (!enabled) await this.#waitUntilEnded(name)
    return this.get(principal, name)
  }

  /** Adds the servers of a request in one commit. @returns the results, with a summary */
  async addBatch (principal: Principal, { servers, warnings }: SentServers): Promise<BatchResult> {
    return batchResultOf(await this.createMany(principal, servers), warnings)
  }

  /** Adds several servers in one commit. @returns the result of each server, in the order of the servers */
  async createMany (principal: Principal, servers: SentServers['servers']): Promise<AddOutcome[]> {
    let outcomes: AddOutcome[] = []
    await this.#settings.change((snapshot) => {
      const additions = planAdditions(snapshot, principal, servers, this.#usersMayRun)
      outcomes = additions.outcomes
      return additions.changes
    }, principal)
    return outcomes.map((outcome, at): AddOutcome => {
      const config = servers[at]?.config
      const warnings = outcome.success && isObject(config) ? this.warningsAbout(principal, outcome.name, config) : []
      return warnings.length === 0 ? outcome : { ...outcome, message: warnings.join('. '), warnings }
    })
  }

  /** Overrides `enabled` or the description of a tool, prompt, resource or skill (`overrideItem` of overrides.ts). */
  async overrideItem (
    principal: Principal, name: string, kind: ItemKind, key: string, change: OverrideChange
  ): Promise<PresentedItem> {
    return await overrideItem(this.#settings, this.#gateway, principal, { name, kind, key }, change)
  }

  /** Closes the connections to a server and connects it again. @throws NoSuch, Forbidden */
  async reload (principal: Principal, name: string): Promise<PresentedServer> {
    const server = requireManagedServer(this.#settings.current, principal, name)
    checkConfigAllowed(principal, server.config, this.#usersMayRun)
    await this.#upstreams.restart(name)
    return this.get(principal, name)
  }

  /** Waits for the end of the connections and processes of a removed or disabled server, for at most `endTimeout`. */
  async #waitUntilEnded (name: string): Promise<void> {
    await Promise.race([this.#upstreams.waitUntilClosed(name), sleep(endTimeout, undefined, { ref: false })])
  }

  #toRecord (principal: Principal, server: Server): PresentedServer {
    const { name } = server
    const manages = canManage(principal, server)
    const upstream = this.#upstreams.get(name)
    const required = this.#logins.requiredLogin(principal, server)
    const shown = upstream && connectionStateOf(upstream, isolationOf(server.config) === 'user', required)
    const warnings = [...shown?.warnings ?? [], ...this.#definitions.warningsAbout(name)]
    const state = shown && { ...shown, warnings }
    const view = manages ? undefined : makeView(principal, { kind: 'server', name })
    return toServerRecord(server, state, this.#gateway.catalogue(name, view), manages, required)
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { jsonSize } from '../../../db/json-size.ts'
import type { Change, Server, Snapshot } from '../../../db/store.ts'
import { limits } from '../../base/limits/index.ts'
import {
  canManage, canSee, isInForce, type ItemKind, type OverrideChange, ownNames, ownOverrideOf, type Principal,
  type Settings, withOverride, withPresentRights
} from '../../settings/index.ts'
import { isObject } from '../../../protocol/json.ts'
import { adopt } from '../../../schemas/foreign-config.ts'
import type { ForeignServer } from '../../../schemas/foreign-document.ts'
import { maxConfigEntries } from '../../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { errors, noSuch } from '../../base/errors/index.ts'
import { type Outbound, reachOf } from '../../base/outbound/index.ts'
import { withoutMember } from '../groups/groups.ts'
import { withoutNames } from '../../identity/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import type { Upstreams } from '../../upstream/index.ts'
import { checkNewName, checkServerCount, groupNameWarning } from './new-name.ts'
import { disabling, findItem, toRecord, unlistedItem, type PresentedServer, type PresentedItem } from './present.ts'
import { ServerLogins } from './login.ts'
import { checkMayRun, managed, visible } from './rights.ts'
import { testRecord, Tests, type ServerTest } from './test-record.ts'
import { isStored, toStore, withStorer } from './to-store.ts'

/** The name under which a server is tested that has none yet: nothing can be stored under it. */
const unnamed = '$test'
/** Max wait for a server's processes to end, in ms. */
const endTimeout = 5_000

/** The result for one of several servers. `message`: the error, or the warnings. */
/** The result for one of several servers. `unchanged`: it is there already, as it was sent. */
interface Outcome { name: string, success: boolean, unchanged?: true, message?: string, warnings?: string[] }

/** The configured servers, as the management API reads and writes them. */
export class Servers {
  readonly #settings: Settings
  readonly #upstreams: Upstreams
  readonly #gateway: Gateway
  readonly #usersMayRun: boolean
  readonly #outbound: Outbound
  readonly #login: ServerLogins
  readonly #testing = new Tests(limits.serverTests)

  /** @param usersMayRun ALLOW_USER_STDIO */
  constructor (settings: Settings, upstreams: Upstreams, gateway: Gateway, usersMayRun: boolean, outbound: Outbound) {
    this.#settings = settings
    this.#upstreams = upstreams
    this.#gateway = gateway
    this.#usersMayRun = usersMayRun
    this.#outbound = outbound
    this.#login = new ServerLogins(upstreams)
  }

  /** The same as `list`, with the addresses at which the principal has to log in. */
  async listToLogIn (principal: Principal): Promise<PresentedServer[]> {
    const snapshot = this.#settings.current
    const seen = [...snapshot.servers.values()].filter((server) => canSee(principal, server, 'public'))
    await Promise.all(seen.map(async (server) => { await this.#login.prepare(principal, server) }))
    return this.list(principal)
  }

  /** The same as `get`, with the address at which the principal has to log in. @throws NoSuch */
  async getToLogIn (principal: Principal, name: string): Promise<PresentedServer> {
    await this.#login.prepare(principal, visible(this.#settings.current, principal, name))
    return this.get(principal, name)
  }

  /**
   * Checks that the principal may end the login that it uses at a server: a shared one is for those who manage the server.
   * @throws NoSuch, Forbidden
   */
  mustHoldLogin (principal: Principal, name: string): void {
    const snapshot = this.#settings.current
    if (visible(snapshot, principal, name).config.isolation !== 'user') managed(snapshot, principal, name)
  }

  /** Ends that login, here and at its authorization server. @returns whether there was one @throws NoSuch, Forbidden */
  async logOut (principal: Principal, name: string): Promise<boolean> {
    this.mustHoldLogin(principal, name)
    return await this.#login.leave(principal, visible(this.#settings.current, principal, name))
  }

  /** The servers that the principal may see. */
  list (principal: Principal): PresentedServer[] {
    const snapshot = this.#settings.current
    return [...snapshot.servers.values()]
      .filter((server) => canSee(principal, server, 'public'))
      .map((server) => this.#record(principal, server))
  }

  /** The same, and their configs by name. A Map, since an object would move names like `7` to the front. */
  listed (principal: Principal): { servers: PresentedServer[], mcpServers: Map<string, Record<string, unknown>> } {
    const servers = this.list(principal)
    return { servers, mcpServers: new Map(servers.map(({ name, config }) => [name, config])) }
  }

  /** @throws NoSuch, also for a server that the principal may not see */
  get (principal: Principal, name: string): PresentedServer {
    return this.#record(principal, visible(this.#settings.current, principal, name))
  }

  /** Adds a server; it connects in the background. @throws InvalidInput, Forbidden, ShareUsed */
  async create (principal: Principal, name: string, config: Record<string, unknown>): Promise<PresentedServer> {
    await this.#settings.change((snapshot) => {
      checkNewName(snapshot, principal, name, 'name')
      checkServerCount(snapshot, principal, 0)
      return [toStore(snapshot, principal, name, config, this.#usersMayRun)]
    }, principal)
    return this.get(principal, name)
  }

  /**
   * Connects to a server once, as it would be stored, and tells what it lists or why it does not connect. Nothing is stored. The same
   * rules hold as for storing it.
   * @param name a stored server, whose masked secrets `config` may hold; undefined: a new one
   * @param signal aborted: nobody waits for the result
   * @throws NoSuch, InvalidInput, Forbidden, LimitReached, ShareUsed
   */
  async test (principal: Principal, name: string | undefined, config: Record<string, unknown>, signal: AbortSignal): Promise<ServerTest> {
    const snapshot = this.#settings.current
    const isStored = name !== undefined && snapshot.servers.has(name)
    if (name !== undefined && !isStored) checkNewName(snapshot, principal, name, 'name')
    if (!isStored) checkServerCount(snapshot, principal, 0)
    const { value } = toStore(snapshot, principal, name ?? unnamed, config, this.#usersMayRun)
    if (value === undefined) throw new errors.InvalidInput('"config" is missing')
    const end = this.#testing.begin(principal)
    try {
      const seen = await this.#upstreams.probe(name ?? unnamed, value, signal)
      return testRecord(seen, value, [...adopt(config).warnings])
    } finally {
      end()
    }
  }

  /**
   * Replaces a server's config, but for members that it leaves out and `toStore` keeps.
   * @param newName renames the server, in groups and in the scopes of keys too
   * @throws NoSuch, Forbidden, InvalidInput
   */
  async update (principal: Principal, name: string, config: Record<string, unknown>, newName?: string): Promise<PresentedServer> {
    await this.#settings.change((snapshot) => {
      managed(snapshot, principal, name)
      const isRenamed = newName !== undefined && newName !== name
      if (isRenamed) checkNewName(snapshot, principal, newName, 'newName', name)
      const change = toStore(snapshot, principal, name, config, this.#usersMayRun)
      return [isRenamed ? { ...change, rename: newName } : change]
    }, principal)
    return this.get(principal, newName ?? name)
  }

  /**
   * Warnings about a stored server, in sentences. They need no DNS look-up: where a host name resolves to shows in the server's status when
   * it connects.
   * @param sent the config as it was sent, in whose members other programs may have written
   */
  warnings (name: string, sent: Record<string, unknown> = {}): string[] {
    const sentences = [...adopt(sent).warnings, this.#refusal(name), groupNameWarning(this.#settings.current, name)]
    return sentences.filter((each) => each !== undefined)
  }

  /** The reason why a stored server will not be connected; undefined when none is known. */
  #refusal (name: string): string | undefined {
    const snapshot = this.#settings.current
    const { config: stored = {}, problem } = snapshot.servers.get(name) ?? {}
    const { url, command, openapi, ...config } = withPresentRights(snapshot, stored)
    if (problem !== undefined) return `It will not be connected: ${problem}`
    if (config.type === 'stdio' || (config.type === undefined && command !== undefined)) return undefined
    const addresses = [url, openapi?.url].filter((address) => typeof address === 'string')
    const reasons = addresses.map((address) => this.#outbound.warning(address, reachOf(config)))
    const reason = reasons.find((each) => each !== undefined)
    return reason === undefined ? undefined : `It will not be connected: ${reason}`
  }

  /** @throws NoSuch also for an item that the server is known not to have, Forbidden */
  mustManageItem (principal: Principal, name: string, kind: ItemKind, key: string): void {
    this.#withItem(this.#settings.current, principal, name, kind, key)
  }

  /** The stored config of a server that the principal may change, with its secrets. @throws NoSuch, Forbidden */
  managed (principal: Principal, name: string): ServerConfig { return managed(this.#settings.current, principal, name).config }

  /** Checks that the principal may change a server. @throws NoSuch, Forbidden */
  mustManage (principal: Principal, name: string): void {
    managed(this.#settings.current, principal, name)
  }

  /** Removes a server, from groups and from the scopes of keys too. @throws NoSuch, Forbidden */
  async remove (principal: Principal, name: string): Promise<void> {
    await this.#settings.change((snapshot) => {
      managed(snapshot, principal, name)
      return [
        { entity: 'mcpServers', key: name, value: undefined },
        ...withoutMember(snapshot, name),
        ...withoutNames(snapshot, 'allowedServers', [name])
      ]
    }, principal)
    await this.#ended(name)
  }

  /**
   * Enables or disables a server. An admin who enables one that is not in force stands for it from then on.
   * @throws NoSuch, Forbidden, InvalidInput to enable one of a bad name, ShareError
   */
  async toggle (principal: Principal, name: string, enabled: boolean): Promise<PresentedServer> {
    this.#settings.countLarge(principal, jsonSize(this.managed(principal, name)))
    await this.#settings.change((snapshot) => {
      const server = managed(snapshot, principal, name)
      checkMayRun(principal, server.config, this.#usersMayRun)
      const badName = disabling(server)
      if (enabled && badName !== undefined) throw new errors.InvalidInput(`It cannot be enabled: ${badName}; rename it (newName)`)
      const isTaken = enabled && principal.isAdmin && !isInForce(snapshot, server)
      const config = isTaken ? withStorer(snapshot, principal, server.config) : server.config
      return [{ entity: 'mcpServers', key: name, value: { ...config, enabled } }]
    }, principal)
    if (!enabled) await this.#ended(name)
    return this.get(principal, name)
  }

  /**
   * Adds several servers. One that cannot be stored does not keep the others from it; they are stored in one commit. One that is there
   * already, as it would be stored, stays.
   * @returns the result of each, in their order
   */
  async createMany (principal: Principal, servers: readonly ForeignServer[]): Promise<Outcome[]> {
    let outcomes: Outcome[] = []
    await this.#settings.change((snapshot) => {
      const names = new Set<string>()
      const changes: Change[] = []
      outcomes = servers.map((each, at): Outcome => {
        const { name } = each
        try {
          if (name === '' || !isObject(each.config)) {
            throw new errors.InvalidInput(`servers.${at}: an entry is {"name": "…", "config": {…}}`)
          }
          if (names.has(name)) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)} already`)
          if (isStored(snapshot, principal, name, each.config, this.#usersMayRun)) {
            names.add(name)
            return { name, success: true, unchanged: true }
          }
          checkNewName(snapshot, principal, name, 'name')
          checkServerCount(snapshot, principal, names.size)
          changes.push(toStore(snapshot, principal, name, each.config, this.#usersMayRun))
          names.add(name)
          return { name, success: true }
        } catch (error) {
          if (!isRefusal(error)) throw error
          return { name, success: false, message: error.message }
        }
      })
      return changes
    }, principal)
    return outcomes.map((outcome, at): Outcome => {
      const config = servers[at]?.config
      if (!outcome.success || !isObject(config)) return outcome
      const warnings = this.warnings(outcome.name, config)
      return warnings.length === 0 ? outcome : { ...outcome, message: warnings.join('. '), warnings }
    })
  }

  /**
   * Overrides `enabled` or the description of one tool, prompt or resource, whatever the server lists later.
   * @returns the item as it is shown now; with its name only when no list of the server is known to have it
   * @throws NoSuch, also for an item that is in no known list of the server; Forbidden; InvalidInput for more than `maxEntries` overrides;
   * ShareError
   */
  async override (principal: Principal, name: string, kind: ItemKind, key: string, change: OverrideChange): Promise<PresentedItem> {
    this.#settings.countLarge(principal, jsonSize(this.managed(principal, name)))
    let own = key
    await this.#settings.change((snapshot) => {
      const { server, own: ownKey } = this.#withItem(snapshot, principal, name, kind, key)
      own = ownKey
      const value = withOverride(server, kind, own, change)
      if (Object.keys(value[kind] ?? {}).length > Math.max(maxConfigEntries, Object.keys(server.config[kind] ?? {}).length)) {
        throw new errors.InvalidInput(`A server has at most ${maxConfigEntries} overrides of its ${kind}: reset one first`)
      }
      return [{ entity: 'mcpServers', key: name, value }]
    }, principal)
    const server = visible(this.#settings.current, principal, name)
    return findItem(kind, own, server, this.#gateway.catalogues(name)) ?? unlistedItem(kind, own, server)
  }

  /** Closes the connections to a server and connects it again. @throws NoSuch, Forbidden */
  async reload (principal: Principal, name: string): Promise<PresentedServer> {
    const server = managed(this.#settings.current, principal, name)
    checkMayRun(principal, server.config, this.#usersMayRun)
    await this.#upstreams.restart(name)
    return this.get(principal, name)
  }

  /**
   * A server that the principal may change and that may have this item: it is listed, overridden, or no list of the server is known.
   * @param key its own name or URI, or its name on merged routes
   * @returns the server, and the item's own name or URI
   * @throws NoSuch, Forbidden
   */
  #withItem (snapshot: Snapshot, principal: Principal, name: string, kind: ItemKind, key: string): { server: Server, own: string } {
    const server = managed(snapshot, principal, name)
    const catalogues = this.#gateway.catalogues(name)
    const isKnown = findItem(kind, key, server, catalogues) !== undefined || ownOverrideOf(server, kind, key) !== undefined
    if (catalogues.length === 0 || isKnown) return { server, own: key }
    const listed = kind === 'resources' ? [] : catalogues.flatMap(({ lists }) => lists[kind].map((item) => item.key))
    const own = ownNames(name, snapshot.system.nameSeparator ?? '-', listed).get(key)
    if (own === undefined) throw noSuch(kind.slice(0, -1), key)
    return { server, own }
  }

  /** Waits until all connections and processes of a removed or disabled server have ended, but not longer than `endTimeout`. */
  async #ended (name: string): Promise<void> {
    await Promise.race([this.#upstreams.ended(name), sleep(endTimeout, undefined, { ref: false })])
  }

  #record (principal: Principal, server: Server): PresentedServer {
    const { name } = server
    const manages = canManage(principal, server)
    const upstream = this.#upstreams.get(name)
    const wanted = this.#login.wanted(principal, server)
    // With a login of each user, the status is that of whoever asks.
    const isOwn = server.config.isolation === 'user' && upstream?.login !== undefined
    const status = upstream && isOwn ? (wanted ? 'oauth_required' : upstream.available ? 'connected' : upstream.status) : upstream?.status
    const error = isOwn && status === 'connected' ? null : upstream?.error ?? null
    const { warnings = [], connectedAt, protocolVersion } = upstream ?? {}
    const state = status === undefined ? undefined : { status, error, warnings, connectedAt, protocolVersion }
    return toRecord(server, state, this.#gateway.catalogue(name), manages, wanted)
  }
}

/** Whether an error says why a server cannot be stored. */
const isRefusal = (error: unknown): error is Error =>
  [errors.InvalidInput, errors.Forbidden, errors.LimitReached, errors.ShareUsed].some((kind) => error instanceof kind)

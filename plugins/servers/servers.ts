import { setTimeout as sleep } from 'node:timers/promises'
import type { Change, Server, Snapshot } from '../../db/store.ts'
import { isObject } from '../../protocol/json.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { canManage, canSee } from '../access/visibility.ts'
import { reachOf, type Outbound } from '../outbound/outbound.ts'
import { withoutMember } from '../groups/groups.ts'
import { withoutNames } from '../keys/scope.ts'
import type { Settings } from '../settings/settings.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { checkNewName, checkRoom, sharesName } from './new-name.ts'
import { overrideOf, withOverride, type ItemKind, type OverrideChange } from '../access/overrides.ts'
import { findItem, toRecord, unlistedItem, type ServerRecord, type ShownItem } from './present.ts'
import { managed, mayRun, visible } from './rights.ts'
import { toStore } from './to-store.ts'

/** How long the end of a server's process is waited for, in ms. */
const patience = 5_000

/** What became of one server of many. */
export interface Outcome { name: string, success: boolean, message?: string }

/** The configured servers, as the management API reads and writes them. */
export class Servers {
  readonly #settings: Settings
  readonly #upstreams: Upstreams
  readonly #gateway: Gateway
  readonly #usersMayRun: boolean
  readonly #outbound: Outbound

  /** @param usersMayRun whether users who are no admins may store servers that run commands (ALLOW_USER_STDIO) */
  constructor (settings: Settings, upstreams: Upstreams, gateway: Gateway, usersMayRun: boolean, outbound: Outbound) {
    this.#settings = settings
    this.#upstreams = upstreams
    this.#gateway = gateway
    this.#usersMayRun = usersMayRun
    this.#outbound = outbound
  }

  list (principal: Principal): ServerRecord[] {
    const snapshot = this.#settings.current
    return [...snapshot.servers.values()]
      .filter((server) => canSee(snapshot, principal, server, 'public'))
      .map((server) => this.#record(principal, server))
  }

  /** @throws NoSuch, also for what the principal may not see */
  get (principal: Principal, name: string): ServerRecord {
    return this.#record(principal, visible(this.#settings.current, principal, name))
  }

  async create (principal: Principal, name: string, config: Record<string, unknown>): Promise<ServerRecord> {
    await this.#settings.change((snapshot) => {
      checkNewName(snapshot, principal, name, 'name')
      checkRoom(snapshot, principal, 0)
      return [toStore(snapshot, principal, name, config, this.#usersMayRun)]
    }, principal)
    return this.get(principal, name)
  }

  /** Replaces a server's config; what `toStore` keeps stays where the new one is silent. `newName` renames it everywhere. */
  async update (principal: Principal, name: string, config: Record<string, unknown>, newName?: string): Promise<ServerRecord> {
    await this.#settings.change((snapshot) => {
      managed(snapshot, principal, name)
      if (newName === undefined || newName === name) return [toStore(snapshot, principal, name, config, this.#usersMayRun)]
      checkNewName(snapshot, principal, newName, 'newName')
      return [{ ...toStore(snapshot, principal, name, config, this.#usersMayRun), rename: newName }]
    }, principal)
    return this.get(principal, newName ?? name)
  }

  /**
   * What to know of a server that was stored, in sentences; undefined: nothing. Nothing is looked up for that: what a name stands
   * for shows when it is connected, in the server's status.
   */
  warning (name: string): string | undefined {
    const known = [this.#refusal(name), sharesName(this.#settings.current, name)].filter((each) => each !== undefined)
    return known.length > 0 ? known.join('. ') : undefined
  }

  /** Why a stored server will not be connected; undefined: nothing is known against it. */
  #refusal (name: string): string | undefined {
    const { url, command, openapi, ...config } = this.#settings.current.servers.get(name)?.config ?? {}
    if (config.type === 'stdio' || (config.type === undefined && command !== undefined)) return undefined
    const addresses = [url, openapi?.url].filter((address) => typeof address === 'string')
    const why = addresses.map((address) => this.#outbound.warning(address, reachOf(config))).find((each) => each !== undefined)
    return why === undefined ? undefined : `It will not be connected: ${why}`
  }

  /** @throws NoSuch also for an item that the server is known not to have, Forbidden */
  mustManageItem (principal: Principal, name: string, kind: ItemKind, key: string): void {
    this.#withItem(this.#settings.current, principal, name, kind, key)
  }

  /** @throws NoSuch, Forbidden */
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
    await this.#gone(name)
  }

  async toggle (principal: Principal, name: string, enabled: boolean): Promise<ServerRecord> {
    await this.#settings.change((snapshot) => {
      const server = managed(snapshot, principal, name)
      mayRun(principal, server.config, this.#usersMayRun)
      return [{ entity: 'mcpServers', key: name, value: { ...server.config, enabled } }]
    }, principal)
    if (!enabled) await this.#gone(name)
    return this.get(principal, name)
  }

  /**
   * Adds many servers, each by itself: those that can be stored are, in one commit.
   * @returns what became of each, in their order
   */
  async createMany (principal: Principal, servers: readonly unknown[]): Promise<Outcome[]> {
    let outcomes: Outcome[] = []
    await this.#settings.change((snapshot) => {
      const names = new Set<string>()
      const changes: Change[] = []
      outcomes = servers.map((each, at): Outcome => {
        const name = isObject(each) && typeof each.name === 'string' ? each.name : ''
        try {
          if (!isObject(each) || name === '' || !isObject(each.config)) {
            throw new errors.InvalidInput(`servers.${at}: an entry is {"name": "…", "config": {…}}`)
          }
          if (names.has(name)) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)} already`)
          checkNewName(snapshot, principal, name, 'name')
          checkRoom(snapshot, principal, names.size)
          changes.push(toStore(snapshot, principal, name, each.config, this.#usersMayRun))
          names.add(name)
          return { name, success: true }
        } catch (error) {
          if (!(error instanceof errors.InvalidInput) && !(error instanceof errors.Forbidden) && !(error instanceof errors.LimitReached)) {
            throw error
          }
          return { name, success: false, message: error.message }
        }
      })
      return changes
    }, principal)
    return outcomes.map((outcome) => outcome.success ? { ...outcome, message: this.warning(outcome.name) } : outcome)
  }

  /**
   * Says something of one tool, prompt or resource: it stays, whatever the upstream says later.
   * @returns the item as it is shown now; one that is not listed as far as is known has its name only
   * @throws NoSuch also for an item that the server is known not to have
   */
  async override (principal: Principal, name: string, kind: ItemKind, key: string, change: OverrideChange): Promise<ShownItem> {
    await this.#settings.change((snapshot) => {
      const server = this.#withItem(snapshot, principal, name, kind, key)
      return [{ entity: 'mcpServers', key: name, value: withOverride(server.config, kind, key, change) }]
    }, principal)
    const server = visible(this.#settings.current, principal, name)
    return findItem(kind, key, server, this.#gateway.catalogues(name)) ?? unlistedItem(kind, key, server)
  }

  /** Drops the connections to a server and makes them anew. */
  async reload (principal: Principal, name: string): Promise<ServerRecord> {
    const server = managed(this.#settings.current, principal, name)
    mayRun(principal, server.config, this.#usersMayRun)
    await this.#upstreams.restart(name)
    return this.get(principal, name)
  }

  #withItem (snapshot: Snapshot, principal: Principal, name: string, kind: ItemKind, key: string): Server {
    const server = managed(snapshot, principal, name)
    const catalogues = this.#gateway.catalogues(name)
    if (catalogues.length > 0 && !findItem(kind, key, server, catalogues) && !overrideOf(server.config, kind, key)) {
      throw new errors.NoSuch(kind.slice(0, -1))
    }
    return server
  }

  /** What ran for a server that is no more has ended when this is answered, unless it takes too long. */
  async #gone (name: string): Promise<void> {
    await Promise.race([this.#upstreams.ended(name), sleep(patience, undefined, { ref: false })])
  }

  #record (principal: Principal, server: Server): ServerRecord {
    const { storedByUser: _ours, ...config } = server.config
    return toRecord({ ...server, config }, this.#upstreams.get(server.name), this.#gateway.catalogue(server.name), canManage(principal, server))
  }
}

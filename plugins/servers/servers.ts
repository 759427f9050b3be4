import type { Change, Server, Snapshot } from '../../db/store.ts'
import { nameProblem } from '../../schemas/names.ts'
import { problemOf } from '../../schemas/problem.ts'
import { incomplete, ServerConfig } from '../../schemas/server.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../gateway/view.ts'
import { canManage, canSee } from '../gateway/visibility.ts'
import { isMask, maskConfig, unmask } from '../secrets/mask.ts'
import type { Settings } from '../settings/settings.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { toRecord, type ServerRecord } from './present.ts'

/** What is kept of a stored server where an update does not speak of it (DECISIONS §5). */
const kept = ['owner', 'visibility', 'visibilityDefaulted', 'enabled', 'tools', 'prompts', 'resources', 'createdAt'] as const

/** The configured servers, as the management API reads and writes them. */
export class Servers {
  readonly #settings: Settings
  readonly #upstreams: Upstreams
  readonly #usersMayRun: boolean

  /** @param usersMayRun whether users who are no admins may store servers that run commands (ALLOW_USER_STDIO) */
  constructor (settings: Settings, upstreams: Upstreams, usersMayRun: boolean) {
    this.#settings = settings
    this.#upstreams = upstreams
    this.#usersMayRun = usersMayRun
  }

  list (principal: Principal): ServerRecord[] {
    const snapshot = this.#settings.current
    return [...snapshot.servers.values()].filter((server) => canSee(snapshot, principal, server, 'public')).map((server) => this.#record(principal, server))
  }

  /** @throws NoSuch, also for what the principal may not see */
  get (principal: Principal, name: string): ServerRecord {
    return this.#record(principal, this.#visible(this.#settings.current, principal, name))
  }

  async create (principal: Principal, name: string, config: Record<string, unknown>): Promise<ServerRecord> {
    await this.#settings.change((snapshot) => {
      if (snapshot.servers.has(name)) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(name)} already`)
      return [this.#toStore(snapshot, principal, name, config)]
    })
    return this.get(principal, name)
  }

  /** Replaces a server's config; what `kept` lists stays where the new one is silent. `newName` renames it everywhere. */
  async update (principal: Principal, name: string, config: Record<string, unknown>, newName?: string): Promise<ServerRecord> {
    await this.#settings.change((snapshot) => {
      this.#managed(snapshot, principal, name)
      if (newName === undefined || newName === name) return [this.#toStore(snapshot, principal, name, config)]
      const problem = nameProblem(newName)
      if (problem !== undefined) throw new errors.InvalidInput(`"newName": ${problem}`)
      if (snapshot.servers.has(newName)) throw new errors.InvalidInput(`There is a server named ${JSON.stringify(newName)} already`)
      return [{ ...this.#toStore(snapshot, principal, name, config), rename: newName }]
    })
    return this.get(principal, newName ?? name)
  }

  /** @throws NoSuch, Forbidden */
  mustManage (principal: Principal, name: string): void {
    this.#managed(this.#settings.current, principal, name)
  }

  async remove (principal: Principal, name: string): Promise<void> {
    await this.#settings.change((snapshot) => {
      this.#managed(snapshot, principal, name)
      return [{ entity: 'mcpServers', key: name, value: undefined }]
    })
  }

  async toggle (principal: Principal, name: string, enabled: boolean): Promise<ServerRecord> {
    await this.#settings.change((snapshot) => {
      const server = this.#managed(snapshot, principal, name)
      this.#mayRun(principal, server.config)
      return [{ entity: 'mcpServers', key: name, value: { ...server.config, enabled } }]
    })
    return this.get(principal, name)
  }

  /** Drops the connections to a server and makes them anew. */
  async reload (principal: Principal, name: string): Promise<ServerRecord> {
    const server = this.#managed(this.#settings.current, principal, name)
    this.#mayRun(principal, server.config)
    await this.#upstreams.restart(name)
    return this.get(principal, name)
  }

  /** The one way in for a server's config, whoever brings it. @throws InvalidInput, Forbidden, NoSuch */
  #toStore (snapshot: Snapshot, principal: Principal, name: string, sent: Record<string, unknown>): Change & { entity: 'mcpServers' } {
    const stored = snapshot.servers.get(name)
    if (stored) this.#managed(snapshot, principal, name)
    const problem = nameProblem(name)
    if (problem !== undefined && !stored) throw new errors.InvalidInput(`"name": ${problem}`)
    const config = this.#withSecrets(sent, stored)
    const wrong = problemOf(ServerConfig, config)
    if (wrong) throw new errors.InvalidInput(`"config${wrong.path === '' ? '' : `.${wrong.path}`}": ${wrong.message}`)
    const checked = config as ServerConfig
    this.#mayRun(principal, checked)
    const lacks = incomplete(checked)
    if (lacks !== undefined) throw new errors.InvalidInput(`"config": ${lacks}`)
    return { entity: 'mcpServers', key: name, value: this.#withOwner(snapshot, principal, checked, stored) }
  }

  /** Fills in the owner, the visibility and what the update left unsaid. */
  #withOwner (snapshot: Snapshot, principal: Principal, sent: ServerConfig, stored: Server | undefined): ServerConfig {
    const own = principal.username !== undefined && snapshot.users.has(principal.username) ? principal.username : 'admin'
    const config: Record<string, unknown> = { ...sent }
    if (stored) {
      for (const key of kept) if (config[key] === undefined && stored.config[key] !== undefined) config[key] = stored.config[key]
      // A visibility that somebody states is meant; the one that came back unchanged with its mark is not.
      if (sent.visibility !== undefined && (sent.visibilityDefaulted !== true || sent.visibility !== stored.config.visibility)) delete config.visibilityDefaulted
    } else {
      config.createdAt = new Date().toISOString()
      delete config.visibilityDefaulted
    }
    if (config.owner === undefined || !principal.isAdmin) config.owner = stored?.config.owner ?? own
    if (!principal.isAdmin && sent.owner !== undefined && sent.owner !== config.owner) throw new errors.Forbidden('Only an admin may set a server\'s owner')
    if (config.visibility === undefined) { config.visibility = 'private'; config.visibilityDefaulted = true }
    return config as ServerConfig
  }

  /** Puts the stored secrets where masks came back. @throws InvalidInput for masks that stand for nothing, or meant for another target */
  #withSecrets (sent: Record<string, unknown>, stored: Server | undefined): unknown {
    const { value, unknown } = unmask(sent, stored?.config, stored && maskConfig(stored.config))
    if (unknown.length > 0) throw new errors.InvalidInput(`"config.${unknown.join('", "config.')}": this is a mask, not a value; send the secret itself`)
    if (stored && JSON.stringify(sent) !== JSON.stringify(value) && targetOf(value) !== targetOf(stored.config)) {
      throw new errors.InvalidInput('"config": the address or command changed, so masked secrets must be sent anew')
    }
    return value
  }

  /** @throws Forbidden when this principal may not have commands run, or calls described by an OpenAPI document made, for it */
  #mayRun (principal: Principal, { type, command }: ServerConfig): void {
    if (principal.isAdmin || this.#usersMayRun || (type !== 'openapi' && type !== 'stdio' && command === undefined)) return
    throw new errors.Forbidden('Only an admin may store servers that run a command or are of type "openapi" (ALLOW_USER_STDIO lifts this)')
  }

  #visible (snapshot: Snapshot, principal: Principal, name: string): Server {
    const server = snapshot.servers.get(name)
    if (!server || !canSee(snapshot, principal, server, 'public')) throw new errors.NoSuch('server')
    return server
  }

  #managed (snapshot: Snapshot, principal: Principal, name: string): Server {
    const server = this.#visible(snapshot, principal, name)
    if (!canManage(principal, server)) throw new errors.Forbidden('Only its owner or an admin may change this server')
    return server
  }

  #record (principal: Principal, server: Server): ServerRecord {
    return toRecord(server, this.#upstreams.get(server.name), canManage(principal, server))
  }
}

/** What a secret was meant for. */
const targetOf = (config: unknown): string => {
  const { url, command } = config as ServerConfig
  return JSON.stringify([isMask(url) ? undefined : url, command])
}

import type { Client, Exchange, Question } from '../../protocol/exchange.ts'
import { plainClass } from '../../protocol/capabilities.ts'
import type { Response } from '../../protocol/message.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { limits } from '../limits/index.ts'
import { sha256 } from '../secrets/hash.ts'
import { RequestRunner } from './links/requests.ts'
import { takeAnswer, takeNews, takeQuestion, type DispatchDeps } from './inbound/dispatch.ts'
import type { Catalogue } from './catalogues/catalogue.ts'
import { Catalogues } from './catalogues/catalogues.ts'
import { withheldNames } from './links/environment.ts'
import { ConnectionSupervisor, type Status } from './links/supervisor.ts'
import { passthroughOf } from './links/passthrough.ts'
import { Placement } from './links/placement.ts'
import type { Semaphore } from '../limits/semaphore.ts'
import { Subscriptions } from './inbound/subscriptions.ts'
import { isRemote, type TransportDeps } from './links/transport.ts'
import { expand } from './links/variables.ts'

export type { Status }

export interface UpstreamDeps {
  clientInfo: { name: string, version: string }
  transport: TransportDeps
  spawning: Semaphore
  initTimeout: number
  requestTimeout: number
  log: (level: 'info' | 'warn' | 'debug', sentence: string, more?: Record<string, unknown>) => void
  /** What it lists has changed. */
  listed: () => void
  /** Its status has changed. */
  moved: () => void
  /** A catalogue is worth keeping: its text. */
  keep: (text: Iterable<string>) => void
  /** Told before a question goes to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, client: Client) => Promise<void>
  /** A log message for everybody who sees this server and is served where it came from. */
  broadcast: (method: string, paramsText: string, serves: (client: Client) => boolean) => void
}

/** A server that is alive: what its clients may ask of it, on which of its links, and what it lists to whom. */
export class Upstream {
  readonly name: string
  readonly config: ServerConfig
  readonly remote: boolean
  /** What of its config has no effect, and why, in sentences for who runs it. */
  readonly warnings: readonly string[]
  readonly subscriptions: Subscriptions
  readonly #deps: UpstreamDeps
  readonly #placement: Placement
  readonly #supervisor: ConnectionSupervisor
  readonly #requests: RequestRunner
  readonly #catalogues: Catalogues
  /** When it was last asked what it lists to a class of clients. */
  readonly #tried = new Map<string, number>()
  /** Some of its clients' headers go on to it. */
  readonly #passes: boolean

  constructor (name: string, config: ServerConfig, deps: UpstreamDeps) {
    this.name = name
    this.config = config
    this.remote = isRemote(config)
    this.#deps = deps
    const passthrough = passthroughOf(config, this.remote)
    this.#passes = passthrough.names.length > 0
    this.warnings = [
      ...expand(config, deps.transport.environment).warnings,
      ...withheldNames(config).map((name) => `${name} in env is not given to it: an admin has to store this server for that`),
      ...passthrough.warnings
    ]
    const warn = (sentence: string): void => { deps.log('warn', sentence) }
    this.#placement = new Placement({
      name,
      config,
      remote: this.remote,
      passes: this.#passes ? passthrough.names : undefined,
      kind: () => this.#supervisor.kind,
      warn
    })
    const { pool } = this.#placement
    const { type, command, args, url, openapi } = config
    this.#catalogues = new Catalogues({
      target: sha256(JSON.stringify([type, command, args, url, openapi?.schema ?? openapi?.url])),
      listed: deps.listed,
      keep: deps.keep,
      warn
    })
    const arrivals: DispatchDeps = {
      name,
      refresh: (slot) => {
        const from = this.#placement.lists(slot) ? slot : pool.base
        this.#catalogues.refresh(from, from === pool.base)
      },
      contested: () => {
        if (!this.#placement.contest()) return
        warn(
          'it asked something while calls of several clients were open: clients that can be asked get connections of their own from now on'
        )
        this.#supervisor.wake()
      },
      onQuestion: deps.onQuestion,
      broadcast: (slot, method, paramsText) => { deps.broadcast(method, paramsText, (client) => this.#placement.serves(slot, client)) },
      dropped: (method) => { deps.log('debug', `${method} could not be attributed to one client and was dropped`) }
    }
    this.#supervisor = new ConnectionSupervisor(config, pool, this.#catalogues, {
      ...deps,
      passes: this.#passes,
      lists: (slot) => this.#placement.lists(slot),
      question: async (slot, ...args) => await takeQuestion(arrivals, slot, ...args),
      news: (slot, ...args) => { takeNews(arrivals, slot, ...args) },
      answered: takeAnswer,
      warn
    })
    this.#requests = new RequestRunner(name, this.#supervisor)
    this.subscriptions = new Subscriptions(name, this.#placement, this.#requests)
  }

  get status (): Status { return this.#supervisor.status }
  /** Why it is not connected, for who runs it. */
  get error (): string | null { return this.#supervisor.error }
  /** The same, for its clients. */
  get reason (): string | undefined { return this.#supervisor.reason }
  /** A text without the secrets of the server's config. */
  hide (text: string): string { return this.#supervisor.hide(text) }
  get connectedAt (): number | undefined { return this.#supervisor.connectedAt }
  /** How long a list is worth waiting for, in ms: it has never answered, neither now nor in the last run, and has just begun. */
  get promising (): number { return this.#supervisor.promising }

  /** Whether it is a process that can be expected to start within so many ms, as it did last time. */
  startsWithin (ms: number): boolean { return !this.remote && this.#supervisor.openTime < ms }

  /** What was known of it when the program last ended. */
  restore (text: string | undefined): void {
    this.#catalogues.restore(text)
  }

  /** Takes over what the one before it listed, and what clients asked of it: its connections end, but they are told nothing, and need not ask again. @returns those clients */
  adopt (former: Upstream): Client[] {
    this.#catalogues.takeOver(former.#catalogues)
    return this.#placement.adopt(former.#placement)
  }

  /** Begins to connect, and keeps at it. Returns at once. */
  connect (): void {
    for (const sentence of this.warnings) this.#deps.log('warn', sentence)
    if (!this.#catalogues.known) this.#catalogues.keep()
    this.#supervisor.start()
  }

  /** What it lists to this client, as far as is known: of the client's own link, of its class, or of clients that declare nothing. */
  catalogue (client: Client): Catalogue | undefined {
    const key = this.#placement.keyOf(client)
    return this.#catalogues.of(this.#placement.pool.find(key), key.capabilityClass)
  }

  /** How many connections it has. */
  get links (): number { return this.#placement.pool.all.filter((slot) => slot.link !== undefined).length }

  /** What it lists to a client that declares nothing, as far as is known. */
  get listed (): Catalogue | undefined { return this.#catalogues.of(undefined, plainClass) }

  /** What it lists to any class of clients, as far as is known. */
  get catalogues (): Catalogue[] { return this.#catalogues.all }

  /** The id of the client's own catalogue, if it has one that differs from its class's. */
  ownCatalogue (client: Client): number | undefined {
    return this.#placement.find(client)?.catalogue?.id
  }

  knows (client: Client): boolean {
    return this.#catalogues.has(this.#placement.keyOf(client).capabilityClass)
  }

  get hasOwnCatalogues (): boolean { return this.#placement.pool.all.some((slot) => slot.catalogue !== undefined) }

  /** How long to wait for what it lists to clients like this one, in ms: not again, for a while, once that has taken too long. */
  patienceFor (client: Client): number {
    const tried = this.#tried.get(this.#placement.keyOf(client).capabilityClass) ?? -Infinity
    const since = Date.now() - tried
    return since > limits.newClassRetry ? limits.newClass : limits.newClass - since
  }

  /** What it said to be new is being read. @returns when that is done, and how long it is worth a wait, in ms; undefined: nothing is new */
  catchUp (client: Client): { done: Promise<unknown>, patience: number } | undefined {
    const { base } = this.#placement.pool
    const own = this.#placement.find(client)
    const readings = [...new Set(own && this.#placement.lists(own) ? [own, base] : [base])].flatMap(
      (slot) => this.#catalogues.catchUp(slot, slot === base) ?? []
    )
    if (readings.length === 0) return undefined
    return {
      done: Promise.all(readings.map(({ done }) => done)),
      patience: limits.firstAnswerBudget + Math.max(...readings.map(({ since }) => since)) - Date.now()
    }
  }

  /** Finds out what it lists to clients like this one. Rejects when it cannot be reached. */
  async learn (client: Client): Promise<void> {
    const { capabilityClass } = this.#placement.keyOf(client)
    if (Date.now() - (this.#tried.get(capabilityClass) ?? -Infinity) > limits.newClassRetry) this.#tried.set(capabilityClass, Date.now())
    if (this.#tried.size > limits.classesPerServer) this.#tried.clear()
    const slot = this.#placement.listing(client)
    await this.#supervisor.ready(slot)
    if (!this.#catalogues.has(slot.key.capabilityClass)) await this.#catalogues.read(slot, slot === this.#placement.pool.base)
  }

  /**
   * Sends one request of a client. A session that expired is remade, and the request repeated if it cannot have run.
   * @param params its params, given the progress token to carry
   * @returns the answer, which may be an error
   * @throws RpcError -32001 when no answer can be had, in words; -32602 for a header that cannot go on
   */
  async call (exchange: Exchange, params: (token: number) => string): Promise<Response> {
    const { client, method } = exchange
    const passed = this.#passes ? this.#placement.passed(exchange.headers) : undefined
    // What is asked about a task goes where it runs.
    const slot =
      (method.startsWith('tasks/') ? this.#placement.ofTask(exchange.params.taskId, client) : undefined) ??
      this.#placement.slotFor(client, passed)
    const { options } = this.config
    const deadlines = {
      timeout: options?.timeout ?? this.#deps.requestTimeout,
      resetTimeoutOnProgress: options?.resetTimeoutOnProgress ?? true,
      maxTotalTimeout: options?.maxTotalTimeout
    }
    return await this.#requests.once(
      slot,
      (link) => link.call(exchange, params, deadlines, this.#passes ? (passed ?? {}) : undefined),
      exchange
    )
  }

  notify (client: Client, method: string, paramsText: string): void {
    for (const { link } of this.#placement.slotsOf(client)) link?.notify(method, paramsText)
  }

  /** The client wants log messages from another level on than before. @throws RpcError the upstream's, relayed; -32001 when there is no answer */
  async setLevel (client: Client): Promise<void> {
    const slot = this.#placement.slotOf(client, this.#placement.passed(client.headersOf?.('logging/setLevel')))
    slot.serve(client)
    const { link, level } = slot
    if (link && level !== undefined) await this.#requests.once(slot, async (link) => { await link.setLevel(level) })
  }

  /** A client is gone, or may not use this server any more. */
  async release (client: Client): Promise<void> {
    await this.#placement.pool.release(client)
  }

  /** Ends every link; resolves when nothing is left of them. */
  async close (): Promise<void> {
    this.#supervisor.close()
    this.#catalogues.close()
    await this.#placement.pool.close()
  }
}

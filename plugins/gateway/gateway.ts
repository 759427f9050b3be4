import { setTimeout as sleep } from 'node:timers/promises'
import type { Snapshot } from '../../db/store.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import type { Asker, Exchange } from '../../protocol/exchange.ts'
import { elementsOf, isObject, memberOf, withMembers } from '../../protocol/json.ts'
import { isLevel, reaches, type Listener } from '../../protocol/listener.ts'
import { toRpcError } from '../../protocol/message.ts'
import { limits } from '../limits/index.ts'
import { listKinds, type ListKind } from '../upstream/catalogue.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { showsApps } from './apps.ts'
import { noHooks, type CallContext, type GatewayHooks } from './hooks.ts'
import { exposedName, isCut } from './names.ts'
import { foldSurface, hiddenKey, readerOf, type Surface, type Target } from './surface.ts'
import { Tasks } from './tasks.ts'
import type { View } from './view.ts'
import { reach, type PublicReach } from './visibility.ts'

/** The text of a result, or its bytes where they are kept ready. */
export type Result = string | Buffer
type Method = (exchange: Exchange<View>) => Promise<Result>

/** What a route says of itself when a session begins. */
export interface Description { capabilities: Record<string, unknown>, serverInfo: string, instructions: string | undefined }

/** Everything that lists or calls a tool, prompt or resource goes through here, with a View. */
export class Gateway {
  /** Who hears of changes. */
  readonly listeners = new Set<Listener<View>>()
  readonly #snapshot: () => Snapshot
  readonly #upstreams: Upstreams
  readonly #anonymous: PublicReach
  readonly #serverInfo: string
  readonly #hooks = noHooks()
  readonly #surfaces = new Map<string, { generation: number, version: number, surface: Surface }>()
  readonly #tasks = new Tasks()
  readonly #methods = new Map<string, Method>([
    ['ping', async () => '{}'],
    ['tools/list', async (exchange) => await this.#list(exchange, 'tools')],
    ['prompts/list', async (exchange) => await this.#list(exchange, 'prompts')],
    ['resources/list', async (exchange) => await this.#list(exchange, 'resources')],
    ['resources/templates/list', async (exchange) => await this.#list(exchange, 'resourceTemplates')],
    ['tools/call', (exchange) => this.#named(exchange, 'tools', 'tool')],
    ['prompts/get', async (exchange) => await this.#named(exchange, 'prompts', 'prompt')],
    ['resources/read', async (exchange) => await this.#read(exchange)],
    ['resources/subscribe', async (exchange) => await this.#subscribe(exchange)],
    ['resources/unsubscribe', async (exchange) => await this.#unsubscribe(exchange)],
    ['completion/complete', async (exchange) => await this.#complete(exchange)],
    ['logging/setLevel', async (exchange) => await this.#setLevel(exchange)],
    ['tasks/get', async (exchange) => await this.#task(exchange)],
    ['tasks/result', async (exchange) => await this.#task(exchange)],
    ['tasks/cancel', async (exchange) => await this.#task(exchange)],
    ['tasks/list', async (exchange) => await this.#listTasks(exchange)]
  ])

  /** @param serverInfo the gateway's own, for routes that merge several servers */
  constructor (snapshot: () => Snapshot, upstreams: Upstreams, anonymous: PublicReach, serverInfo: { name: string, version: string }) {
    this.#snapshot = snapshot
    this.#upstreams = upstreams
    this.#anonymous = anonymous
    this.#serverInfo = JSON.stringify(serverInfo)
    upstreams.onQuestion = async (server, question, asker) => { for (const hook of this.#hooks.onQuestion) await hook(server, question, asker) }
    upstreams.on('broadcast', (server, method, paramsText) => { this.#broadcast(server, method, paramsText) })
  }

  /** What stands between a server's name and its item's. */
  get separator (): string { return this.#snapshot().system.nameSeparator ?? '-' }

  /** Registers a hook. Order of registration is order of running. */
  addHook<Name extends keyof GatewayHooks> (name: Name, hook: GatewayHooks[Name]): void {
    this.#hooks[name].push(hook)
  }

  /**
   * Does one request.
   * @returns the text of its result
   * @throws RpcError what to answer instead
   */
  handle (exchange: Exchange<View>): Promise<Result> {
    return (this.#methods.get(exchange.method) ?? this.#unknown)(exchange)
  }

  /** A method that we do not know is for the server to know, where there is one. */
  readonly #unknown: Method = async (exchange) => {
    const { scope } = exchange.view
    if (exchange.method.startsWith('tasks/')) return await this.#task(exchange)
    // What is a notification, or begins a session, is no request that a server should see from a client.
    if (scope.kind !== 'server' || isNotification(exchange.method) || exchange.method === 'initialize') throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
    return await this.#forward(exchange, { server: scope.name, key: '' }, undefined, {})
  }

  /** A notification of a client that is for its upstreams: they get it as it came. */
  notify (view: View, asker: Asker, method: string, paramsText: string): void {
    if (!isNotification(method) || (method !== 'notifications/roots/list_changed' && view.scope.kind !== 'server')) return
    for (const { server } of reach(this.#snapshot(), view, this.#anonymous)) this.#upstreams.get(server.name)?.notify(asker, method, paramsText)
  }

  /**
   * The settings changed: clients let go of what they do not reach any more. Their calls there end, their own connections too, and
   * nothing more comes to them.
   */
  withdraw (clients: Iterable<{ view: View, asker: Asker }>): void {
    const reached = new Map<string, ReadonlySet<string>>()
    for (const { view, asker } of clients) {
      const touched = this.#upstreams.touchedBy(asker)
      if (touched.length === 0) continue
      const names = reached.get(view.key) ?? new Set(reach(this.#snapshot(), view, this.#anonymous).map(({ server }) => server.name))
      reached.set(view.key, names)
      const lost = new Set(touched.filter(({ name }) => !names.has(name)))
      if (lost.size > 0) this.#upstreams.release(asker, lost).catch(() => {})
      for (const upstream of touched) {
        for (const uri of lost.has(upstream) ? [] : upstream.subscribedBy(asker)) if (!this.#mayRead(view, asker, upstream.name, uri)) upstream.unsubscribe(asker, uri).catch(() => {})
      }
    }
  }

  /** Whether a resource of a server is one that a client may read; where its server is not known yet, it may be. */
  #mayRead (view: View, asker: Asker, server: string, uri: string): boolean {
    const surface = this.surface(view, asker)
    if (!surface.capabilities.has(server)) return true
    return view.scope.kind === 'server' ? !surface.hidden.has(hiddenKey(server, uri)) : readerOf(surface, uri)?.server === server
  }

  /** What a session on this route is told first. Waits for a server that has never been seen. @throws RpcError when a single server is not there */
  async describe (view: View, asker: Asker): Promise<Description> {
    let surface = this.surface(view, asker)
    if (surface.capabilities.size < surface.servers.length) {
      await this.#upstreams.learn(surface.servers.filter((name) => !surface.capabilities.has(name)), asker, view.scope.kind === 'server')
      surface = this.surface(view, asker)
    }
    this.#mustBeKnown(view, surface)
    // Servers that nobody has seen yet may bring anything: what is not announced now, a client never asks for.
    const unknown = surface.capabilities.size < surface.servers.length || surface.servers.length === 0
    const capabilities = unknown ? { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true }, logging: {}, completions: {}, ...surface.shown } : surface.shown
    return { capabilities, serverInfo: surface.serverInfo ?? this.#serverInfo, instructions: surface.instructions }
  }

  /** What a view sees now, to a client of this kind. Memoised until a catalogue or the settings change. */
  surface (view: View, asker: Asker): Surface {
    const key = `${view.key}\n${this.#upstreams.catalogueKey(asker)}`
    const { generation } = this.#upstreams
    const snapshot = this.#snapshot()
    const known = this.#surfaces.get(key)
    if (known?.generation === generation && known.version === snapshot.version) return known.surface
    const surface = foldSurface({
      single: view.scope.kind === 'server',
      separator: this.separator,
      reached: reach(snapshot, view, this.#anonymous).map((each) => ({ ...each, catalogue: this.#upstreams.get(each.server.name)?.catalogue(asker) })),
      apps: showsApps(asker.capabilities)
    }, known?.surface)
    this.#surfaces.delete(key)
    this.#surfaces.set(key, { generation, version: snapshot.version, surface })
    const oldest = this.#surfaces.size > limits.surfaces ? this.#surfaces.keys().next().value : undefined
    if (oldest !== undefined) this.#surfaces.delete(oldest)
    return surface
  }

  /** The input schema of a tool as its server listed it to clients that declare nothing; undefined: not known. */
  inputSchema (view: View, name: string): unknown {
    if (view.scope.kind !== 'server') return undefined
    const listed = this.#upstreams.get(view.scope.name)?.listed?.lists.tools
    const prefix = `${view.scope.name}${this.separator}`
    const item = listed?.find(({ key }) => key === name) ?? listed?.find(({ key }) => `${prefix}${key}` === name)
    return item && (JSON.parse(item.text) as { inputSchema?: unknown }).inputSchema
  }

  async #list (exchange: Exchange<View>, kind: ListKind): Promise<Result> {
    for (const hook of this.#hooks.onList) await hook(exchange, kind)
    if (exchange.params.cursor !== undefined) throw new RpcError(code.invalidParams, 'Invalid cursor: this list has one page')
    const surface = await this.#settled(exchange)
    this.#mustBeKnown(exchange.view, surface)
    if (exchange.view.scope.kind === 'server' && !isObject(surface.shown[listKinds[kind].capability])) throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
    return surface.parts[kind].body
  }

  async #named (exchange: Exchange<View>, kind: 'tools' | 'prompts', what: string): Promise<Result> {
    const { name } = exchange.params
    if (typeof name !== 'string') throw new RpcError(code.invalidParams, `Invalid params: "name" must be the ${what}'s name`)
    const target = this.#byName(exchange.view, this.surface(exchange.view, exchange.asker), kind, name) ?? await this.#findNamed(exchange, kind, name)
    if (!target) throw new RpcError(code.invalidParams, `Unknown ${what}: ${name}`)
    return await this.#forward(exchange, target, target.key, { name: JSON.stringify(target.key) })
  }

  async #read (exchange: Exchange<View>): Promise<Result> {
    const target = await this.#reader(exchange)
    return await this.#forward(exchange, target, target.key, { uri: JSON.stringify(target.key) })
  }

  async #subscribe (exchange: Exchange<View>): Promise<Result> {
    const target = await this.#reader(exchange)
    const { asker } = exchange
    await this.#upstream(target.server, asker).subscribe(asker, target.key)
    return '{}'
  }

  async #unsubscribe (exchange: Exchange<View>): Promise<Result> {
    const { asker, params: { uri } } = exchange
    // What it subscribed to it may leave, whether it is still shown or not.
    const upstream = typeof uri === 'string' ? this.#upstreams.touchedBy(asker).find((each) => each.isSubscribed(asker, uri)) : undefined
    if (upstream) await upstream.unsubscribe(asker, String(uri))
    else await this.#reader(exchange)
    return '{}'
  }

  async #complete (exchange: Exchange<View>): Promise<Result> {
    const { ref } = exchange.params
    const refText = memberOf(exchange.paramsText, 'ref') ?? '{}'
    if (isObject(ref) && ref.type === 'ref/prompt' && typeof ref.name === 'string') {
      const { name } = ref
      const target = await this.#findNamed(exchange, 'prompts', name)
      if (!target) throw new RpcError(code.invalidParams, `Unknown prompt: ${name}`)
      return await this.#forward(exchange, target, undefined, { ref: withMembers(refText, { name: JSON.stringify(target.key) }) })
    }
    if (isObject(ref) && ref.type === 'ref/resource' && typeof ref.uri === 'string') {
      const { uri } = ref
      const target = await this.#find(exchange, (surface) => surface.parts.resourceTemplates.targets.get(uri) ?? readerOf(surface, uri))
      if (!target) throw new RpcError(code.invalidParams, `Unknown resource template: ${uri}`)
      return await this.#forward(exchange, target, undefined, {})
    }
    throw new RpcError(code.invalidParams, 'Invalid params: "ref" must be a ref/prompt with a name or a ref/resource with a uri')
  }

  async #setLevel (exchange: Exchange<View>): Promise<Result> {
    const { level } = exchange.params
    if (!isLevel(level)) throw new RpcError(code.invalidParams, `Invalid params: "level" must be a log level, not ${JSON.stringify(level) ?? 'nothing'}`)
    const surface = await this.#settled(exchange)
    const logging = [...surface.capabilities].filter(([, capabilities]) => capabilities.logging !== undefined).map(([name]) => name)
    if (exchange.view.scope.kind === 'server' && logging.length === 0) throw new RpcError(code.methodNotFound, 'Method not found: logging/setLevel')
    exchange.asker.level = level
    const told = Promise.all(logging.map(async (name) => { await this.#upstream(name, exchange.asker).setLevel(exchange.asker, level).catch(() => {}) }))
    // Among several, one that is silent is not waited for: what it sends is filtered here as well.
    await (exchange.view.scope.kind === 'server' ? told : Promise.race([told, sleep(limits.firstAnswer, undefined, { ref: false })]))
    return '{}'
  }

  async #task (exchange: Exchange<View>): Promise<Result> {
    const { taskId } = exchange.params
    const { servers } = this.surface(exchange.view, exchange.asker)
    const server = this.#tasks.serverOf(taskId, exchange.view.principal.key, servers)
    if (server === undefined) throw new RpcError(code.invalidParams, 'Unknown task')
    return await this.#forward(exchange, { server, key: '' }, undefined, {})
  }

  /** The tasks of this principal only: a shared connection's list is everybody's. */
  async #listTasks (exchange: Exchange<View>): Promise<Result> {
    const { scope, principal } = exchange.view
    if (scope.kind !== 'server') throw new RpcError(code.methodNotFound, 'Method not found: tasks/list')
    const result = String(await this.#forward(exchange, { server: scope.name, key: '' }, undefined, {}))
    const own = elementsOf(memberOf(result, 'tasks') ?? '[]').filter((text) => this.#tasks.owns((JSON.parse(text) as { taskId?: unknown }).taskId, principal.key, scope.name))
    return withMembers(result, { tasks: `[${own.join(',')}]` })
  }

  /** Sends a request on to one server, with some of its params changed, and gives the text of its result as it came. */
  async #forward (exchange: Exchange<View>, target: Target, item: string | undefined, changes: Record<string, string>): Promise<Result> {
    const context: CallContext = { exchange, server: target.server, item, started: performance.now() }
    // Waiting for what is there already would cost each call a turn for each hook.
    for (const hook of this.#hooks.onCall) { const waiting = hook(context); if (waiting) await waiting }
    try {
      const upstream = this.#upstream(target.server, exchange.asker)
      const response = await upstream.call(exchange, (token) => paramsFor(exchange, token, changes))
      if (response.errorText !== undefined) throw toRpcError(response.errorText)
      let result = response.resultText ?? '{}'
      if (exchange.params.task !== undefined) this.#tasks.note(result, { principal: exchange.view.principal.key, server: target.server })
      for (const hook of this.#hooks.onResult) { const next = hook(context, result); result = typeof next === 'string' ? next : await next }
      return result
    } catch (error) {
      for (const hook of this.#hooks.onError) await hook(context, error)
      throw error
    }
  }

  /** Finds something in the surface; a name that is not there may be one that this client's kind has not been shown yet. */
  async #find<Found> (exchange: Exchange<View>, look: (surface: Surface) => Found | undefined): Promise<Found | undefined> {
    const surface = this.surface(exchange.view, exchange.asker)
    const found = look(surface)
    if (found !== undefined) return found
    const settled = await this.#settled(exchange)
    this.#mustBeKnown(exchange.view, settled)
    return settled === surface ? undefined : look(settled)
  }

  /** Finds a tool or prompt by the name that the view shows it under. A server that is still connecting, and whose label the name begins with, is waited for. @throws RpcError -32001 when that was in vain */
  async #findNamed (exchange: Exchange<View>, kind: 'tools' | 'prompts', name: string): Promise<Target | undefined> {
    const { view, asker } = exchange
    const look = (surface: Surface): Target | undefined => this.#byName(view, surface, kind, name)
    const found = await this.#find(exchange, look)
    if (found || view.scope.kind === 'server') return found
    const late = reach(this.#snapshot(), view, this.#anonymous).flatMap(({ server, label }) => {
      const upstream = name.startsWith(`${label}${this.separator}`) ? this.#upstreams.get(server.name) : undefined
      return upstream?.status === 'connecting' && !upstream.listed ? [upstream] : []
    })
    if (late.length === 0) return undefined
    await this.#upstreams.learn(late.map((upstream) => upstream.name), asker, true)
    const target = look(this.surface(view, asker))
    const away = late.find(({ status, listed }) => status !== 'connected' && !listed)
    if (target || !away) return target
    throw new RpcError(code.unavailable, `Server ${JSON.stringify(away.name)} is not connected: ${whyNot(away)}`)
  }

  async #reader (exchange: Exchange<View>): Promise<Target> {
    const { uri } = exchange.params
    if (typeof uri !== 'string') throw new RpcError(code.invalidParams, 'Invalid params: "uri" must be the resource\'s URI')
    const { scope } = exchange.view
    const target = await this.#find(exchange, (surface) => readerOf(surface, uri))
    if (target) return { server: target.server, key: uri }
    // A single server may read what it does not list; what its operator disabled stays shut.
    if (scope.kind === 'server' && !this.surface(exchange.view, exchange.asker).hidden.has(hiddenKey(scope.name, uri))) return { server: scope.name, key: uri }
    throw new RpcError(code.resourceNotFound, `Resource not found: ${uri}`)
  }

  #byName (view: View, surface: Surface, kind: 'tools' | 'prompts', name: string): Target | undefined {
    const { targets } = surface.parts[kind]
    const found = targets.get(name)
    if (found || view.scope.kind !== 'server') return found
    const { name: server } = view.scope
    const prefix = `${server}${this.separator}`
    // Merged routes show a long name cut, and it is good here, too.
    return name.startsWith(prefix) && targets.has(name.slice(prefix.length))
      ? targets.get(name.slice(prefix.length))
      : isCut(name) ? [...targets.values()].find(({ key }) => exposedName(server, this.separator, key) === name) : undefined
  }

  async #settled (exchange: Exchange<View>): Promise<Surface> {
    const { view, asker } = exchange
    const surface = this.surface(view, asker)
    await this.#upstreams.learn(surface.servers, asker, view.scope.kind === 'server')
    return this.surface(view, asker)
  }

  /** @throws RpcError when the route's one server is away and nothing is known of it */
  #mustBeKnown ({ scope }: View, surface: Surface): void {
    if (scope.kind !== 'server' || surface.capabilities.size > 0) return
    const upstream = this.#upstreams.get(scope.name)
    throw new RpcError(code.unavailable, `Server ${JSON.stringify(scope.name)} is not connected: ${whyNot(upstream)}`)
  }

  #upstream (name: string, asker: Asker): Upstream {
    const upstream = this.#upstreams.get(name)
    if (!upstream) throw new RpcError(code.unavailable, `Server ${JSON.stringify(name)} is not connected`)
    this.#upstreams.touch(asker, upstream)
    return upstream
  }

  #broadcast (server: string, method: string, paramsText: string): void {
    const { level } = method === 'notifications/message' ? JSON.parse(paramsText) as { level?: unknown } : {}
    for (const listener of this.listeners) {
      if (listener.level !== undefined && method === 'notifications/message' && !reaches(level, listener.level)) continue
      if (reach(this.#snapshot(), listener.view, this.#anonymous).some((each) => each.server.name === server)) listener.deliver(method, paramsText)
    }
  }
}

/** A request without an id is none: it would run past all that looks at requests. */
const isNotification = (method: string): boolean => method.startsWith('notifications/')

/** Why a server cannot be asked now, for its clients. */
const whyNot = (upstream: Upstream | undefined): string => upstream?.status === 'connecting' ? 'it is still connecting' : upstream?.reason ?? 'it cannot be used as it is configured'

/** The params to send upstream: what was changed, and our progress token where the client gave one. */
function paramsFor ({ params, paramsText }: Exchange, token: number, changes: Record<string, string>): string {
  const meta = params._meta
  if (isObject(meta) && meta.progressToken !== undefined) changes = { ...changes, _meta: withMembers(memberOf(paramsText, '_meta') ?? '{}', { progressToken: String(token) }) }
  return Object.keys(changes).length === 0 ? paramsText : withMembers(paramsText, changes)
}

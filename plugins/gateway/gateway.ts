import { setTimeout as sleep } from 'node:timers/promises'
import type { Snapshot } from '../../db/store.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange } from '../../protocol/exchange.ts'
import { elementsOf, isObject, memberOf, withMembers } from '../../protocol/json.ts'
import { isLevel, reaches, type Listener } from '../../protocol/listener.ts'
import { notificationText, toRpcError } from '../../protocol/message.ts'
import { limits } from '../limits/index.ts'
import { listKinds, type ListKind } from '../upstream/catalogues/catalogue.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { noHooks, type CallContext, type GatewayHooks } from './hooks.ts'
import type { List } from './list.ts'
import { Subscriptions } from './subscriptions.ts'
import { readerOf, type Surface, type Target } from './surface.ts'
import { Surfaces, type Description } from './surfaces.ts'
import { Tasks } from './tasks.ts'
import type { View } from '../access/view.ts'
import type { PublicReach } from '../access/visibility.ts'

/** The text of a result, or a list that is still to be written. */
export type Result = string | List
type Method = (exchange: Exchange<View>) => Promise<Result>

/** Everything that lists or calls a tool, prompt or resource goes through here, with a View. */
export class Gateway {
  /** Who hears of changes. */
  readonly listeners = new Set<Listener<View> & Client>()
  readonly #upstreams: Upstreams
  readonly #hooks = noHooks()
  readonly #surfaces: Surfaces
  readonly #subscriptions: Subscriptions
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
    ['resources/subscribe', async (exchange) => await this.#subscriptions.add(exchange)],
    ['resources/unsubscribe', async (exchange) => await this.#subscriptions.remove(exchange)],
    ['completion/complete', async (exchange) => await this.#complete(exchange)],
    ['logging/setLevel', async (exchange) => await this.#setLevel(exchange)],
    ['tasks/get', async (exchange) => await this.#task(exchange)],
    ['tasks/result', async (exchange) => await this.#task(exchange)],
    ['tasks/cancel', async (exchange) => await this.#task(exchange)],
    ['tasks/list', async (exchange) => await this.#listTasks(exchange)]
  ])

  /** @param serverInfo the gateway's own, for routes that merge several servers */
  constructor (snapshot: () => Snapshot, upstreams: Upstreams, anonymous: PublicReach, serverInfo: { name: string, version: string }) {
    this.#upstreams = upstreams
    this.#surfaces = new Surfaces(snapshot, upstreams, anonymous, JSON.stringify(serverInfo))
    this.#subscriptions = new Subscriptions(upstreams, this.#surfaces)
    upstreams.onQuestion = async (server, question, client) => {
      for (const hook of this.#hooks.onQuestion) await hook(server, question, client)
    }
    upstreams.on('broadcast', (...message) => { this.#broadcast(...message) })
  }

  /** What stands between a server's name and its item's. */
  get separator (): string { return this.#surfaces.separator }

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
    if (scope.kind !== 'server' || isNotification(exchange.method) || exchange.method === 'initialize') {
      throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
    }
    return await this.#forward(exchange, { server: scope.name, key: '' }, undefined, {})
  }

  /** A notification of a client that is for its upstreams: they get it as it came. */
  notify (view: View, client: Client, method: string, paramsText: string): void {
    if (!isNotification(method) || (method !== 'notifications/roots/list_changed' && view.scope.kind !== 'server')) return
    for (const { server } of this.#surfaces.reached(view)) this.#upstreams.get(server.name)?.notify(client, method, paramsText)
  }

  /**
   * The settings changed: clients let go of what they do not reach any more. Their calls there end, their own connections too, and
   * nothing more comes to them.
   */
  withdraw (clients: Iterable<{ view: View, client: Client }>): void {
    const reached = new Map<string, ReadonlySet<string>>()
    for (const { view, client } of clients) {
      const touched = this.#upstreams.touchedBy(client)
      if (touched.length === 0) continue
      const names = reached.get(view.key) ?? new Set(this.#surfaces.reached(view).map(({ server }) => server.name))
      reached.set(view.key, names)
      const lost = new Set(touched.filter(({ name }) => !names.has(name)))
      this.#subscriptions.move(view, client, touched, lost)
      if (lost.size > 0) this.#upstreams.release(client, lost).catch(() => {})
    }
  }

  /** What a view sees now, to a client of this kind. */
  surface (view: View, client: Client): Surface { return this.#surfaces.of(view, client) }

  /** What a session on this route is told first. Waits for a server that has never been seen. @throws RpcError when a single server is not there */
  async describe (view: View, client: Client): Promise<Description> { return await this.#surfaces.describe(view, client) }

  async #list (exchange: Exchange<View>, kind: ListKind): Promise<Result> {
    for (const hook of this.#hooks.onList) await hook(exchange, kind)
    if (exchange.params.cursor !== undefined) throw new RpcError(code.invalidParams, 'Invalid cursor: this list has one page')
    const surface = await this.#surfaces.settled(exchange)
    this.#surfaces.mustBeKnown(exchange.view, surface)
    if (exchange.view.scope.kind === 'server' && !isObject(surface.shown[listKinds[kind].capability])) {
      throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
    }
    return surface.parts[kind].list
  }

  async #named (exchange: Exchange<View>, kind: 'tools' | 'prompts', what: string): Promise<Result> {
    const { name } = exchange.params
    if (typeof name !== 'string') throw new RpcError(code.invalidParams, `Invalid params: "name" must be the ${what}'s name`)
    const target =
      this.#surfaces.byName(exchange.view, this.surface(exchange.view, exchange.client), kind, name) ??
      (await this.#surfaces.named(exchange, kind, name))
    if (!target) throw new RpcError(code.invalidParams, `Unknown ${what}: ${name}`)
    return await this.#forward(exchange, target, target.key, { name: JSON.stringify(target.key) })
  }

  async #read (exchange: Exchange<View>): Promise<Result> {
    const target = await this.#surfaces.reader(exchange)
    return await this.#forward(exchange, target, target.key, { uri: JSON.stringify(target.key) })
  }

  async #complete (exchange: Exchange<View>): Promise<Result> {
    const { ref } = exchange.params
    const refText = memberOf(exchange.paramsText, 'ref') ?? '{}'
    if (isObject(ref) && ref.type === 'ref/prompt' && typeof ref.name === 'string') {
      const { name } = ref
      const target = await this.#surfaces.named(exchange, 'prompts', name)
      if (!target) throw new RpcError(code.invalidParams, `Unknown prompt: ${name}`)
      return await this.#forward(exchange, target, undefined, { ref: withMembers(refText, { name: JSON.stringify(target.key) }) })
    }
    if (isObject(ref) && ref.type === 'ref/resource' && typeof ref.uri === 'string') {
      const { uri } = ref
      const target = await this.#surfaces.find(
        exchange,
        (surface) => surface.parts.resourceTemplates.targets.get(uri) ?? readerOf(surface, uri)
      )
      if (!target) throw new RpcError(code.invalidParams, `Unknown resource template: ${uri}`)
      return await this.#forward(exchange, target, undefined, {})
    }
    throw new RpcError(code.invalidParams, 'Invalid params: "ref" must be a ref/prompt with a name or a ref/resource with a uri')
  }

  async #setLevel (exchange: Exchange<View>): Promise<Result> {
    const { level } = exchange.params
    if (!isLevel(level)) {
      throw new RpcError(code.invalidParams, `Invalid params: "level" must be a log level, not ${JSON.stringify(level) ?? 'nothing'}`)
    }
    const surface = await this.#surfaces.settled(exchange)
    const logging = [...surface.capabilities].filter(([, capabilities]) => capabilities.logging !== undefined).map(([name]) => name)
    if (exchange.view.scope.kind === 'server' && logging.length === 0) {
      throw new RpcError(code.methodNotFound, 'Method not found: logging/setLevel')
    }
    const { client, view: { scope } } = exchange
    const former = client.level
    client.level = level
    const told = Promise.all(logging.map(async (name) => {
      await this.#upstreams.used(name, client).setLevel(client).catch((error: unknown) => {
        // Whoever is away is told when it is back.
        if (scope.kind === 'server' && error instanceof RpcError && error.code !== code.unavailable) { client.level = former; throw error }
      })
    }))
    // Among several, one that is silent is not waited for: what it sends is filtered here as well.
    await (scope.kind === 'server' ? told : Promise.race([told, sleep(limits.firstAnswerBudget, undefined, { ref: false })]))
    return '{}'
  }

  async #task (exchange: Exchange<View>): Promise<Result> {
    const { taskId } = exchange.params
    const { servers } = this.surface(exchange.view, exchange.client)
    const server = this.#tasks.serverOf(taskId, exchange.view.principal.key, servers)
    if (server === undefined) throw new RpcError(code.invalidParams, 'Unknown task')
    return await this.#forward(exchange, { server, key: '' }, undefined, {})
  }

  /** The tasks of this principal only: a shared connection's list is everybody's. */
  async #listTasks (exchange: Exchange<View>): Promise<Result> {
    const { scope, principal } = exchange.view
    if (scope.kind !== 'server') throw new RpcError(code.methodNotFound, 'Method not found: tasks/list')
    const result = String(await this.#forward(exchange, { server: scope.name, key: '' }, undefined, {}))
    const own = elementsOf(memberOf(result, 'tasks') ?? '[]').filter((text) =>
      this.#tasks.owns((JSON.parse(text) as { taskId?: unknown }).taskId, principal.key, scope.name)
    )
    return withMembers(result, { tasks: `[${own.join(',')}]` })
  }

  /** Sends a request on to one server, with some of its params changed, and gives the text of its result as it came. */
  async #forward (exchange: Exchange<View>, target: Target, item: string | undefined, changes: Record<string, string>): Promise<Result> {
    const context: CallContext = { exchange, server: target.server, item, started: performance.now() }
    // Waiting for what is there already would cost each call a turn for each hook.
    for (const hook of this.#hooks.onCall) { const waiting = hook(context); if (waiting) await waiting }
    try {
      const upstream = this.#upstreams.used(target.server, exchange.client)
      const response = await upstream.call(exchange, (token) => paramsFor(exchange, token, changes))
      if (response.errorText !== undefined) throw toRpcError(response.errorText)
      let result = response.resultText ?? '{}'
      if (exchange.params.task !== undefined) this.#tasks.note(result, { principal: exchange.view.principal.key, server: target.server })
      if (exchange.method === 'tools/call' && exchange.view.scope.kind !== 'server') {
        this.#surfaces.linked.note(result, exchange.view.principal.key, target.server)
      }
      for (const hook of this.#hooks.onResult) { const next = hook(context, result); result = typeof next === 'string' ? next : await next }
      return result
    } catch (error) {
      for (const hook of this.#hooks.onError) await hook(context, error)
      throw error
    }
  }

  /** A message of a server for everybody who sees it and is served where it came from. */
  #broadcast (server: string, method: string, paramsText: string, serves: (client: Client) => boolean): void {
    const { level } = method === 'notifications/message' ? JSON.parse(paramsText) as { level?: unknown } : {}
    const seen = new Map<string, boolean>()
    const sees = ({ view }: Listener<View>): boolean => {
      const known = seen.get(view.key) ?? this.#surfaces.reached(view).some((each) => each.server.name === server)
      seen.set(view.key, known)
      return known
    }
    const listeners = [...this.listeners].filter(
      (listener) =>
        (listener.level === undefined || method !== 'notifications/message' || reaches(level, listener.level)) &&
        sees(listener) &&
        serves(listener)
    )
    const text = notificationText(method, paramsText)
    if (text.length * listeners.length > limits.broadcastSize) return
    for (const listener of listeners) listener.send(text)
  }
}

/** A request without an id is none: it would run past all that looks at requests. */
const isNotification = (method: string): boolean => method.startsWith('notifications/')

/** The params to send upstream: what was changed, and our progress token where the client gave one. */
function paramsFor ({ params, paramsText }: Exchange, token: number, changes: Record<string, string>): string {
  const meta = params._meta
  if (isObject(meta) && meta.progressToken !== undefined) {
    changes = { ...changes, _meta: withMembers(memberOf(paramsText, '_meta') ?? '{}', { progressToken: String(token) }) }
  }
  return Object.keys(changes).length === 0 ? paramsText : withMembers(paramsText, changes)
}

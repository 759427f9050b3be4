import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { loadOnce } from '../../../package.ts'

declare module 'fastify' {
  interface FastifyInstance { annexes: Annexes }
}

/** Adds hooks and handlers to an app. */
type Preparation = (app: FastifyInstance) => void | Promise<void>

interface AnnexOptions {
  /**
   * The paths, including the base path, that the annex serves if the main app has no route for them. A path that ends
   * with `/` includes all paths below it.
   */
  readonly paths: readonly string[]
  /**
   * Routes of the annex whose paths also match a route with parameters in the main app. The main app registers them,
   * and hands their requests over.
   */
  readonly shadowedRoutes?: ReadonlyArray<{ readonly method: HTTPMethods, readonly url: string }>
  /** Loads the plugin that registers the routes. */
  readonly load: () => Promise<FastifyPluginAsync>
}

interface Annex {
  readonly paths: readonly string[]
  /** Returns the app of the annex. The first call creates it. */
  readonly open: () => Promise<FastifyInstance>
}

/**
 * Creates an app with the options of the main app.
 * @param server stands in for an HTTP server
 * @param idOf returns the id that the main app gave to a request
 */
type Create = (server: EventEmitter, idOf: (raw: IncomingMessage) => string) => FastifyInstance

/**
 * Fastify apps beside the main one, for routes that an idle gateway does not need. An annex is created by the first
 * request for one of its paths. It has the decorators of the main app, but does not listen: the main app hands requests
 * over to it.
 */
export class Annexes {
  readonly #create: Create
  readonly #preparations: Preparation[] = []
  readonly #annexes: Annex[] = []
  /** The ids of the requests that were handed over. */
  readonly #ids = new WeakMap<IncomingMessage, string>()

  constructor (create: Create) {
    this.#create = create
  }

  /** Applies a preparation to the main app now, and to each annex when it is created. */
  async onEveryApp (app: FastifyInstance, preparation: Preparation): Promise<void> {
    this.#preparations.push(preparation)
    await preparation(app)
  }

  /**
   * Adds an annex, whose app is created later.
   * @param app the main app, before it is ready
   * @returns a function that returns the app of the annex, and creates it on the first call
   */
  add (app: FastifyInstance, { paths, shadowedRoutes = [], load }: AnnexOptions): Annex['open'] {
    let opened: Promise<FastifyInstance> | undefined
    const open = loadOnce(async () => await (opened = this.#open(app, load)))
    this.#annexes.push({ paths, open })
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      await this.#handOver(open, request, reply)
    }
    for (const { method, url } of shadowedRoutes) {
      app.route({
        method,
        url,
        config: { isUnlisted: true },
        handler,
        // Requests that a hook of the main app rejects go to the annex, too, which rejects them in its error format.
        errorHandler: async (_error, request, reply) => { await handler(request, reply) }
      })
    }
    app.addHook('onClose', async () => { await (await opened?.catch(() => {}))?.close() })
    return open
  }

  /** Hands a request over to the annex that serves its path. @returns undefined if no annex does */
  handOver (request: FastifyRequest, reply: FastifyReply): Promise<void> | undefined {
    const path = request.url.split('?', 1)[0] ?? ''
    const annex = this.#annexes.find(({ paths }) =>
      paths.some((each) => each.endsWith('/') ? path.startsWith(each) : path === each))
    return annex && this.#handOver(annex.open, request, reply)
  }

  /** Returns all annexes, creating those that no request has needed yet. */
  async openAll (): Promise<FastifyInstance[]> {
    const opened: FastifyInstance[] = []
    for (const { open } of this.#annexes) opened.push(await open())
    return opened
  }

  async #handOver (open: Annex['open'], { raw, id, originalUrl }: FastifyRequest, reply: FastifyReply): Promise<void> {
    const annex = await open()
    this.#ids.set(raw, id)
    reply.hijack()
    // The annex applies `rewriteUrl` again, and records the URL that it receives as `originalUrl`.
    raw.url = originalUrl
    annex.routing(raw, reply.raw)
  }

  async #open (app: FastifyInstance, load: AnnexOptions['load']): Promise<FastifyInstance> {
    const routes = await load()
    const server = Object.assign(new EventEmitter(), { address: () => app.server.address() })
    const annex = this.#create(server, (raw) => this.#ids.get(raw) ?? '')
    for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(app))) {
      if (!annex.hasDecorator(name)) annex.decorate(name, get ? { getter: () => get.call(app) as unknown } : value)
    }
    for (const preparation of this.#preparations) await preparation(annex)
    await annex.register(routes)
    await annex.ready()
    return annex
  }
}

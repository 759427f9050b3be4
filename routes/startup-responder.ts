import type { Server } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { basePathOf } from '../plugins/base/config/index.ts'
import { sendEnvelopeError, errors } from '../plugins/base/errors/index.ts'
import { createServer } from '../plugins/base/index.ts'
import type { LogOutput } from '../plugins/extensions/index.ts'
import type { Env } from '../schemas/env.ts'
import health from './public/health.ts'

const problem = 'waiting for the database'

interface StartupResponderOptions { readonly logger: { level: string, stream: LogOutput }, readonly env: Env }

/**
 * Responds to health checks while the gateway waits for its database, and logs why it waits. Other requests get 503.
 */
export class StartupResponder {
  readonly #options: StartupResponderOptions
  #app: Promise<FastifyInstance> | undefined

  constructor (options: StartupResponderOptions) {
    this.#options = options
  }

  /** Starts to listen, unless already listening. @param message the log message about why the gateway waits */
  open (message: string): void {
    if (!this.#app) process.once('SIGTERM', this.#stop)
    this.#app ??= this.#listen(message)
  }

  /**
   * Returns the listening server, which the app takes over; undefined if there is none, or if HOST is "localhost": for
   * it, Fastify makes two servers, which cannot be taken over.
   */
  async listener (): Promise<Server | undefined> {
    const server = (await this.#app)?.server
    return server?.listening === true && this.#options.env.HOST !== 'localhost' ? server : undefined
  }

  /** Called before the app listens: closes the server, unless the app has taken it over (`listener`). */
  async close (): Promise<void> {
    process.removeListener('SIGTERM', this.#stop)
    if (await this.listener() === undefined) await (await this.#app)?.close()
  }

  /** Exits the process, since there is nothing to shut down yet. */
  readonly #stop = (): void => {
    void this.#app?.then((app) => { app.log.info('stopping (SIGTERM)') }).finally(() => { process.exit(0) })
  }

  async #listen (message: string): Promise<FastifyInstance> {
    const { logger, env } = this.#options
    const { HOST: host, PORT: port } = env
    // Copied, since Fastify deletes `stream` from the options, which the app uses too.
    const app = createServer({ logger: { ...logger }, env })
    app.setErrorHandler(sendEnvelopeError)
    app.setNotFoundHandler((request, reply) => { sendEnvelopeError(new errors.NotReady(problem), request, reply) })
    await app.register(health, {
      prefix: basePathOf(env),
      status: 'starting',
      servers: () => ({ connected: 0 }),
      problem: () => problem
    })
    app.log.info(message)
    // Errors are ignored here: the gateway reports them when it listens on the same port.
    await app.listen({ host, port, listenTextResolver: (address) => `${address} answers health checks meanwhile` })
      .catch(() => {})
    return app
  }
}

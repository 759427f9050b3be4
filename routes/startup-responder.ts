import type { Server } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { basePathOf } from '../plugins/base/config/index.ts'
import { sendEnvelopeError, errors } from '../plugins/base/errors/index.ts'
import { createServer } from '../plugins/base/index.ts'
import type { LogOutput } from '../plugins/extensions/index.ts'
import type { Env } from '../schemas/env.ts'
import health from './public/health.ts'

const waitingReason = 'waiting for the database'

interface StartupResponderOptions { readonly logger: { level: string, stream: LogOutput }, readonly env: Env }

/**
 * The server that responds to health checks while the gateway waits for its database. Other requests get 503. It also
 * logs why the gateway waits.
 */
export class StartupResponder {
  readonly #options: StartupResponderOptions
  #app: Promise<FastifyInstance> | undefined

  constructor (options: StartupResponderOptions) {
    this.#options = options
  }

  /** Starts to listen, if this is the first call. @param message says why the gateway waits; it is logged */
  open (message: string): void {
    if (!this.#app) process.once('SIGTERM', this.#stop)
    this.#app ??= this.#listen(message)
  }

  /**
   * Returns the listening HTTP server, for the app to take over; undefined if there is none. Also undefined if HOST is
   * "localhost": Fastify then creates two servers (IPv4 and IPv6), which cannot be taken over.
   */
  async listener (): Promise<Server | undefined> {
    const server = (await this.#app)?.server
    return server?.listening === true && this.#options.env.HOST !== 'localhost' ? server : undefined
  }

  /** Closes the server unless `listener` has handed it to the app. To be called before the app listens. */
  async close (): Promise<void> {
    process.removeListener('SIGTERM', this.#stop)
    if (await this.listener() === undefined) await (await this.#app)?.close()
  }

  /** Exits the process on SIGTERM; there is nothing to shut down yet. */
  readonly #stop = (): void => {
    void this.#app?.then((app) => { app.log.info('stopping (SIGTERM)') }).finally(() => { process.exit(0) })
  }

  async #listen (message: string): Promise<FastifyInstance> {
    const { logger, env } = this.#options
    const { HOST: host, PORT: port } = env
    // A copy, since Fastify deletes `stream` from the logger options, which the app uses later.
    const app = createServer({ logger: { ...logger }, env })
    app.setErrorHandler(sendEnvelopeError)
    app.setNotFoundHandler((request, reply) => {
      sendEnvelopeError(new errors.NotReady(waitingReason), request, reply)
    })
    await app.register(health, {
      prefix: basePathOf(env),
      status: 'starting',
      servers: () => ({ connected: 0 }),
      problem: () => waitingReason
    })
    app.log.info(message)
    // Errors are ignored here, since the gateway reports them when it later listens on the same port.
    await app.listen({ host, port, listenTextResolver: (address) => `${address} answers health checks meanwhile` })
      .catch(() => {})
    return app
  }
}

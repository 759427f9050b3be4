import type { FastifyInstance } from 'fastify'
import { basePathOf } from '../plugins/base/config/index.ts'
import { envelope, errors } from '../plugins/base/errors/index.ts'
import { createServer, type ServerOptions } from '../plugins/base/index.ts'
import health from './public/health.ts'

const problem = 'waiting for the database'

/** The app that answers health checks while the database is waited for; every other request gets 503. It does not listen yet. */
export async function buildWaitingRoom (options: ServerOptions): Promise<FastifyInstance> {
  const { env } = options
  const app = createServer(options)
  app.setErrorHandler(envelope)
  app.setNotFoundHandler((request, reply) => { envelope(new errors.NotReady(problem), request, reply) })
  await app.register(health, {
    prefix: basePathOf(env),
    status: 'starting',
    servers: () => ({ connected: 0 }),
    problem: () => problem
  })
  return app
}

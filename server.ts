// The process edge: environment in, logger, listen, and an end that leaves nothing behind.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import { buildApp, buildWaitingRoom, type AppOptions } from './app.ts'
import { CatalogueFiles } from './db/json/catalogues.ts'
import { openStorage } from './db/open.ts'
import { openVault } from './plugins/secrets/vault.ts'
import { milliseconds, readEnv, type Env } from './schemas/env.ts'

/** `npm run dev`: the admin's password is one that everybody knows. */
const developmentPassword = process.argv.includes('--dev') ? 'admin123' : undefined

async function start (): Promise<void> {
  const env = readEnv(process.env)
  const settingsPath = resolve(env.SETTINGS_PATH)
  const dataDir = env.DATA_DIR === undefined ? join(dirname(settingsPath), '.tool-hub') : resolve(env.DATA_DIR)
  const { version } = JSON.parse(
    readFileSync(new URL(import.meta.url.endsWith('.ts') ? './package.json' : '../package.json', import.meta.url), 'utf8')
  ) as { version: string }
  const isNew = env.DB_URL === undefined && !existsSync(settingsPath)
  const forPeople = process.stdout.isTTY === true
  // What is to be told before there is a log.
  const say = (sentence: string): void => { process.stderr.write(`${sentence}\n`) }
  let log: { warn: (sentence: string) => void } = { warn: say }
  const logger = {
    level: env.LOG_LEVEL,
    ...(forPeople ? { transport: { target: 'pino-pretty', options: { translateTime: 'HH:MM:ss', ignore: 'pid,hostname,server' } } } : {})
  }
  const room = new WaitingRoom(logger, env)
  let firstPassword: Promise<string | undefined> = Promise.resolve(undefined)
  const { store, counters } = await openStorage({
    settingsPath,
    dbUrl: env.DB_URL,
    startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT),
    vault: await openVault({ dataDir, encryptionKey: env.ENCRYPTION_KEY }),
    warn: (sentence) => { log.warn(sentence) },
    info: (sentence) => {
      say(sentence)
      room.open()
    }
  })
  const app = await buildApp({
    logger,
    store,
    counters,
    catalogueCache: new CatalogueFiles(join(dataDir, 'catalogues')),
    version,
    env,
    initTimeout: milliseconds(env.INIT_TIMEOUT),
    requestTimeout: milliseconds(env.REQUEST_TIMEOUT),
    drainTimeout: milliseconds(env.DRAIN_TIMEOUT),
    environment: process.env,
    developmentPassword
  })
  log = app.log
  closeWithGrace({ delay: 9_500, logger: { error: (message: unknown) => { app.log.error(message) } } }, async ({ err, signal }) => {
    if (err) app.log.fatal({ err }, 'stopping after an error')
    else app.log.info(`stopping (${signal ?? 'asked to'})`)
    // An admin that is on the way to the store gets there: the password may be given for this start only.
    await firstPassword
    await app.close()
  })
  await app.ready()
  firstPassword = app.users.bootstrap(env.ADMIN_PASSWORD ?? developmentPassword).then((password) => {
    // A password that was made must also be seen, whatever happens next.
    if (password !== undefined) {
      process.stdout.write(
        `\nThe first admin is "admin" with password "${password}". It is shown only now; ${env.DB_URL === undefined ? settingsPath : 'the database'} keeps a hash of it.\n\n`
      )
    }
    return password
  }, (error: unknown): undefined => {
    // Nothing is lost: without an admin what is stored can still be served, and the reason is told.
    app.log.warn(`The first admin could not be stored: ${error instanceof Error ? error.message : String(error)}`)
  })
  await room.close()
  const address = await app
    .listen({ host: env.HOST, port: env.PORT, listenTextResolver: (at) => `Tool-Hub ${version} listens at ${at}` })
    .catch(async (error: unknown) => {
      await firstPassword
      await app.close()
      throw unheard(error, env)
    })
  const password = await firstPassword
  await app.keys.migrate().catch((error: unknown) => {
    app.log.warn(`routing.bearerAuthKey could not be taken over: ${error instanceof Error ? error.message : String(error)}`)
  })
  app.phase.name = 'ready'
  const base = `${address}${env.BASE_PATH.replace(/\/$/, '')}`
  app.log.info(`MCP endpoint: ${base}/mcp`)
  app.log.info(`API and its documentation: ${base}/docs`)
  if (isNew || (env.DB_URL !== undefined && password !== undefined)) process.stdout.write(firstServer(base, password))
}

/** Why the port cannot be had, in words that say what to change. */
function unheard (error: unknown, { HOST: host, PORT: port }: Env): unknown {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new Error(`Port ${port} on ${host} is in use already. Stop what uses it, or choose another with PORT.`)
    case 'EACCES':
      return new Error(`This user may not listen on port ${port}. Choose one above 1023 with PORT.`)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new Error(
        `HOST cannot be ${JSON.stringify(host)}: it is no address of this machine. 127.0.0.1 is for this machine only, 0.0.0.0 for all networks.`
      )
    default:
      return error
  }
}

/** Nothing is under way yet that would need an end of its own. */
const stop = (): void => {
  process.stderr.write('stopping (SIGTERM)\n')
  process.exit(0)
}

/** Answers what orchestrators ask while the database is waited for. */
class WaitingRoom {
  readonly #logger: AppOptions['logger']
  readonly #env: Env
  #app: Promise<FastifyInstance | undefined> | undefined

  constructor (logger: AppOptions['logger'], env: Env) {
    this.#logger = logger
    this.#env = env
  }

  open (): void {
    if (this.#app) return
    process.once('SIGTERM', stop)
    this.#app = this.#listen()
  }

  /** The port is free then. */
  async close (): Promise<void> {
    process.removeListener('SIGTERM', stop)
    await (await this.#app)?.close()
  }

  async #listen (): Promise<FastifyInstance | undefined> {
    const { HOST: host, PORT: port } = this.#env
    const app = await buildWaitingRoom({ logger: this.#logger, env: this.#env })
    // A port that cannot be had is told of when the gateway itself wants it.
    return await app.listen({ host, port, listenTextResolver: (at) => `${at} answers health checks meanwhile` }).then(
      () => app,
      () => undefined
    )
  }
}

/** What to do next, for a person: plain text, also where the log is JSON, so that it can be pasted. */
function firstServer (base: string, password: string | undefined): string {
  const credentials =
    password === undefined
      ? '"{\\"username\\":\\"admin\\",\\"password\\":\\"$ADMIN_PASSWORD\\"}"'
      : `'${JSON.stringify({ username: 'admin', password })}'`
  const json = "-H 'content-type: application/json'"
  const login = `curl -s ${base}/api/auth/login ${json} -d ${credentials} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/'`
  return `\nAdd a first server:\n\ncurl -s ${base}/api/servers -H "x-auth-token: $(${login})" ${json} -d '{"name":"everything","config":{"command":"npx","args":["-y","@modelcontextprotocol/server-everything"]}}'\n\n`
}

start().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
})

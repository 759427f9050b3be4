// The entry point of the process: reads the environment, opens the storage, starts the app, and shuts it down.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import { buildApp, buildWaitingRoom, type AppOptions } from './app.ts'
import { CatalogueFiles } from './db/json/catalogues.ts'
import { openStorage } from './db/open.ts'
import { findChildUser } from './plugins/config/child-user.ts'
import { readEnvironment } from './plugins/config/environment.ts'
import { openKeyRing } from './plugins/secrets/ring.ts'
import { sealerOf } from './plugins/secrets/seal.ts'
import { SealedVault } from './plugins/secrets/vault.ts'
import { doubtsOf, milliseconds, type Env } from './schemas/env.ts'

/** With `npm run dev` the admin has a well-known password. */
const developmentPassword = process.argv.includes('--dev') ? 'admin123' : undefined

async function start (): Promise<void> {
  const env = readEnvironment(process.env)
  const childUser = findChildUser(env.CHILD_USER)
  const settingsPath = resolve(env.SETTINGS_PATH)
  const dataDir = env.DATA_DIR === undefined ? join(dirname(settingsPath), '.tool-hub') : resolve(env.DATA_DIR)
  const { version } = JSON.parse(
    readFileSync(new URL(import.meta.url.endsWith('.ts') ? './package.json' : '../package.json', import.meta.url), 'utf8')
  ) as { version: string }
  const isNew = env.DB_URL === undefined && !existsSync(settingsPath)
  const isTerminal = process.stdout.isTTY === true
  // Messages before the app has made the log go to stderr.
  const print = (message: string): void => { process.stderr.write(`${message}\n`) }
  let log: { warn: (message: string) => void } = { warn: print }
  const logger = {
    level: env.LOG_LEVEL,
    ...(isTerminal ? { transport: { target: 'pino-pretty', options: { translateTime: 'HH:MM:ss', ignore: 'pid,hostname,server' } } } : {})
  }
  const room = new WaitingRoom(logger, env)
  let firstPassword: Promise<string | undefined> = Promise.resolve(undefined)
  const keys = await openKeyRing({ dataDir, encryptionKey: env.ENCRYPTION_KEY })
  const storage = await openStorage({
    settingsPath,
    dbUrl: env.DB_URL,
    startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT),
    vault: new SealedVault(keys),
    warn: (message) => { log.warn(message) },
    info: (message) => {
      print(message)
      room.open()
    }
  })
  const app = await buildApp({
    logger,
    storage,
    sealer: sealerOf(keys),
    catalogueCache: new CatalogueFiles(join(dataDir, 'catalogues')),
    bundles: { root: join(dataDir, 'bundles'), isShared: env.DB_URL !== undefined },
    version,
    env,
    initTimeout: milliseconds(env.INIT_TIMEOUT),
    requestTimeout: milliseconds(env.REQUEST_TIMEOUT),
    drainTimeout: milliseconds(env.DRAIN_TIMEOUT),
    environment: process.env,
    childUser,
    developmentPassword
  })
  log = app.log
  for (const sentence of doubtsOf(process.env)) log.warn(sentence)
  closeWithGrace({ delay: 9_500, logger: { error: (message: unknown) => { app.log.error(message) } } }, async ({ err, signal }) => {
    if (err) app.log.fatal({ err }, 'stopping after an error')
    else app.log.info(`stopping (${signal ?? 'asked to'})`)
    // Waits until the first admin is stored: ADMIN_PASSWORD may be set for this start only.
    await firstPassword
    await app.close()
  })
  await app.ready()
  firstPassword = app.users.bootstrap(env.ADMIN_PASSWORD ?? developmentPassword).then((password) => {
    // A generated password is printed at once, whatever fails next: it cannot be read later.
    if (password !== undefined) {
      const place = env.DB_URL === undefined ? settingsPath : 'the database'
      process.stdout.write(
        `\nThe first admin is "admin" with password "${password}". It is shown only now; ${place} keeps a hash of it.\n\n`
      )
    }
    return password
  }, (error: unknown): undefined => {
    // Not fatal: without an admin the stored settings can still be served.
    app.log.warn(`The first admin could not be stored: ${error instanceof Error ? error.message : String(error)}`)
  })
  await room.close()
  const address = await app
    .listen({ host: env.HOST, port: env.PORT, listenTextResolver: (at) => `Tool-Hub ${version} listens at ${at}` })
    .catch(async (error: unknown) => {
      await firstPassword
      await app.close()
      throw explainListenError(error, env)
    })
  const password = await firstPassword
  await app.keys.migrate().catch((error: unknown) => {
    app.log.warn(`routing.bearerAuthKey could not be migrated to a key: ${error instanceof Error ? error.message : String(error)}`)
  })
  app.phase.name = 'ready'
  const base = `${address}${env.BASE_PATH.replace(/\/$/, '')}`
  app.log.info(`MCP endpoint: ${base}/mcp`)
  app.log.info(`API and its documentation: ${base}/docs`)
  if (isNew || (env.DB_URL !== undefined && password !== undefined)) process.stdout.write(firstServerHint(base, password))
}

/** Replaces an error of `listen` by a message that says what to change. */
function explainListenError (error: unknown, { HOST: host, PORT: port }: Env): unknown {
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
        `HOST cannot be ${JSON.stringify(host)}: it is not an address of this machine. ` +
        '127.0.0.1 is for this machine only, 0.0.0.0 for all networks.'
      )
    default:
      return error
  }
}

/** Ends the process while it waits for the database: there is nothing to shut down yet. */
const stop = (): void => {
  process.stderr.write('stopping (SIGTERM)\n')
  process.exit(0)
}

/** Answers the health checks of orchestrators while the gateway waits for its database. */
class WaitingRoom {
  readonly #logger: AppOptions['logger']
  readonly #env: Env
  #app: Promise<FastifyInstance | undefined> | undefined

  constructor (logger: AppOptions['logger'], env: Env) {
    this.#logger = logger
    this.#env = env
  }

  /** Starts to listen, unless it does already. */
  open (): void {
    if (this.#app) return
    process.once('SIGTERM', stop)
    this.#app = this.#listen()
  }

  /** Stops listening. When the promise resolves, the port is free. */
  async close (): Promise<void> {
    process.removeListener('SIGTERM', stop)
    await (await this.#app)?.close()
  }

  async #listen (): Promise<FastifyInstance | undefined> {
    const { HOST: host, PORT: port } = this.#env
    const app = await buildWaitingRoom({ logger: this.#logger, env: this.#env })
    // Errors are ignored here: the gateway reports them when it listens on the same port itself.
    return await app.listen({ host, port, listenTextResolver: (at) => `${at} answers health checks meanwhile` }).then(
      () => app,
      () => undefined
    )
  }
}

/** A command that adds a first server. It is plain text even where the log is JSON, so that it can be pasted into a shell. */
function firstServerHint (base: string, password: string | undefined): string {
  const credentials =
    password === undefined
      ? '"{\\"username\\":\\"admin\\",\\"password\\":\\"$ADMIN_PASSWORD\\"}"'
      : `'${JSON.stringify({ username: 'admin', password })}'`
  const json = "-H 'content-type: application/json'"
  const login = `curl -s ${base}/api/auth/login ${json} -d ${credentials} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/'`
  const server = { name: 'everything', config: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] } }
  const add = `curl -s ${base}/api/servers -H "x-auth-token: $(${login})" ${json} -d '${JSON.stringify(server)}'`
  return `\nAdd a first server:\n\n${add}\n\n`
}

start().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
})

// The entry point of the process: reads the environment, opens the storage, starts the app, and shuts it down.
import { closeSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import { messageOf } from './db/errors.ts'
import { buildApp } from './app.ts'
import { FileLock, LockHeldError } from './db/file-lock.ts'
import { makeFolder } from './db/folder.ts'
import { CatalogueFiles } from './db/json/catalogues.ts'
import { openStorage } from './db/open.ts'
import { packageVersion } from './package.ts'
import {
  cliCommand, explainListenError, findChildUser, firstStartText, FirstStartNotice, nextStepsText, isLoopback,
  type AccessFile,
  loopbackUrl, newLocalToken, readEnvironment, removeAccessFile, shellQuote, storageLocation, writeAccessFile
} from './plugins/base/config/index.ts'
import { createLogOutput, createLostTerminalCloser } from './plugins/extensions/index.ts'
import { readOrCreateLoginSecret, openKeyRing, SealedVault, createSealer } from './plugins/base/secrets/index.ts'
import { configuredBaseUrl } from './plugins/settings/index.ts'
import type { FirstAdmin } from './plugins/identity/index.ts'
import { durationUnitWarnings, misspeltVariableWarnings } from './schemas/read-env.ts'
import { parseTimerDuration } from './schemas/durations.ts'
import { StartupResponder } from './routes/startup-responder.ts'

/** The well-known password that `npm run dev` gives to the first admin; undefined in other runs. */
const developmentPassword = process.argv.includes('--dev') ? 'admin123' : undefined

/** The warnings that have occurred before there is a logger. */
const earlyWarnings: string[] = []

async function start (): Promise<void> {
  const env = readEnvironment(process.env)
  const childUser = findChildUser(env.CHILD_USER)
  const settingsPath = resolve(env.SETTINGS_PATH)
  const dataDir = env.DATA_DIR === undefined ? join(dirname(settingsPath), '.tool-hub') : resolve(env.DATA_DIR)
  const version = packageVersion()
  let warn = (sentence: string): void => { earlyWarnings.push(sentence) }
  const logger = { level: env.LOG_LEVEL, stream: await createLogOutput() }
  const startupResponder = new StartupResponder({ logger, env })
  const localToken = newLocalToken()
  let firstAdmin: Promise<FirstAdmin | undefined> = Promise.resolve(undefined)
  const keys = await openKeyRing({ dataDir, encryptionKey: env.ENCRYPTION_KEY })
  const storage = await openStorage({
    settingsPath,
    usageFolder: join(dataDir, 'usage'),
    dbUrl: env.DB_URL,
    startupTimeout: parseTimerDuration(env.DB_STARTUP_TIMEOUT),
    vault: new SealedVault(keys),
    warn: (message) => { warn(message) },
    info: (message) => { startupResponder.open(message) }
  })
  if (env.DB_URL === undefined) await lockDataDir(dataDir)
  const app = await buildApp({
    logger,
    listener: await startupResponder.listener(),
    storage,
    sealer: createSealer(keys),
    catalogueCache: new CatalogueFiles(join(dataDir, 'catalogues')),
    bundles: { root: join(dataDir, 'bundles'), isShared: env.DB_URL !== undefined },
    version,
    env: { ...env, JWT_SECRET: readOrCreateLoginSecret(env, dataDir, warn) },
    drainTimeout: parseTimerDuration(env.DRAIN_TIMEOUT),
    environment: process.env,
    childUser,
    childRecord: join(dataDir, 'processes'),
    localToken,
    developmentPassword
  })
  warn = (sentence) => { app.log.warn(sentence) }
  // A copy, since each access to `process.env` is a system call.
  const environment = { ...process.env }
  const warnings =
    [...earlyWarnings.splice(0), ...durationUnitWarnings(environment), ...misspeltVariableWarnings(environment)]
  for (const sentence of warnings) warn(sentence)
  closeWithGrace({
    delay: 9_500, logger: { error: (message: unknown) => { app.log.error(message) } }
  }, async ({ err, signal }) => {
    // Not `fatal`, which flushes the output synchronously and would never return if the output is closed.
    if (err) app.log.error({ err }, 'stopping after an error')
    else app.log.info(`stopping (${signal ?? 'requested'})`)
    // The first admin must be stored before the process ends, since ADMIN_PASSWORD may be set only for this start.
    await firstAdmin
    await app.close()
  })
  await app.ready()
  await startupResponder.close()
  // Listens before the first admin is stored: if listening failed afterwards, the generated password would be lost.
  const listening = app
    .listen({
      host: app.config.listenAddress,
      port: env.PORT,
      listenTextResolver: (at) => `Tool-Hub ${version} listens at ${at}`
    })
    .then((address) => `${address}${env.BASE_PATH.replace(/\/$/, '')}`)
  const place = env.DB_URL === undefined ? settingsPath : 'the database'
  const notice = new FirstStartNotice({
    terminal: process.stderr.isTTY ? process.stderr : undefined,
    dataDir,
    makeFolder: () => { makeFolder(dataDir, 'DATA_DIR') }
  })
  const announce = async (made: FirstAdmin): Promise<void> => {
    try {
      await notice.write(firstStartText({ base: await listening, admin: made, place }))
    } catch (error) {
      // If the admin is not stored yet, this error prevents that, since nobody would know the generated password.
      if (made.password !== undefined) throw new Error(`Its password cannot be shown. ${messageOf(error)}`)
      warn(messageOf(error))
    }
  }
  // Of several replicas that start at once, only the one that stores the admin may print its password on the terminal.
  // A file with the password may be written earlier, since it can be removed again.
  const canAnnounceBeforeStoring = env.DB_URL === undefined || !notice.isTerminal
  const password = env.ADMIN_PASSWORD ?? developmentPassword
  if (env.ADMIN_PASSWORD !== undefined && app.settings.current.users.size > 0) {
    app.log.info('ADMIN_PASSWORD has no effect, since users already exist: tool-hub user reset-password <username> ' +
      'sets a new password')
  }
  firstAdmin = app.users.createFirstAdmin(
    password, listening, canAnnounceBeforeStoring ? announce : undefined
  ).then(async (admin) => {
    if (!admin) notice.retract()
    else {
      if (!canAnnounceBeforeStoring) await announce(admin)
      const passwordSource = admin.password === undefined ? 'the password of ADMIN_PASSWORD' : 'a random password'
      app.log.info(`the first admin ${JSON.stringify(admin.username)} was stored, with ${passwordSource}`)
      if (notice.file !== undefined) {
        app.log.warn(`The credentials of the first start are in ${notice.file}. Read the file, and delete it`)
      }
    }
    return admin
  }, (error: unknown): undefined => {
    notice.retract()
    // The process continues, since it can serve the stored servers without an admin.
    app.log.warn(
      `The first admin could not be stored, so nobody can log in. ${messageOf(error).replace(/[^.]$/, '$&.')} ` +
      'Fix this (if the disk is full, free some space), and start again; SETTINGS_PATH (--config) names another ' +
      'file, in a folder that this user can write to.'
    )
  })
  const base = await listening.catch(async (error: unknown) => {
    await app.close()
    throw explainListenError(error, env)
  })
  const admin = await firstAdmin
  await app.keys.migrateLegacyKey().catch((error: unknown) => {
    app.log.warn(`routing.bearerAuthKey could not be migrated to a key: ${messageOf(error)}`)
  })
  const local = loopbackUrl(base)
  if (local !== undefined) {
    writeCommandLineCredential(
      app, dataDir, { url: local, token: localToken, pid: process.pid, ...storageLocation(settingsPath, env.DB_URL) }
    )
  }
  app.phase.name = 'ready'
  app.log.info(`MCP endpoint: ${base}/mcp`)
  app.log.info(`API and its documentation: ${base}/docs`)
  if (app.console.isOn) app.log.info(`Console: ${base}/console`)
  if (!admin || env.READONLY) return
  const key = await createFirstKey(app, admin.username)
  const url = `${configuredBaseUrl(app.settings.current.system, app.config) ?? base}/mcp`
  const hasServers = app.settings.current.servers.size > 0
  // The command line needs a custom DATA_DIR in its environment, too.
  const prefix = env.DATA_DIR === undefined ? '' : `DATA_DIR=${shellQuote(dataDir)} `
  const addWith = hasServers ? undefined : `${prefix}${cliCommand()} --config ${shellQuote(settingsPath)}`
  const welcome = createWelcomeLink(app, admin, local)
  await notice.write(nextStepsText({ url, key, addWith, welcome })).catch((
    error: unknown
  ) => { warn(messageOf(error)) })
}

/**
 * Creates the one-time link that signs in whoever opens it as the first admin.
 * @param local the URL of the gateway on the loopback interface; undefined if it does not listen there
 * @returns undefined if the operator chose the password, the console is off, or the gateway listens on other addresses
 *   than loopback
 */
function createWelcomeLink (
  app: FastifyInstance, { username, password }: FirstAdmin, local: string | undefined
): string | undefined {
  const user = app.users.get(username)
  const isOnLoopback = isLoopback(app.config.listenAddress)
  if (password === undefined || !user || !app.console.isOn || !isOnLoopback || local === undefined) return undefined
  return `${local}/console/welcome?code=${app.console.welcome.createCode(user)}`
}

/**
 * Creates the first bearer key for agents, which is valid for MCP but not for the management API.
 * @returns the key's token; undefined if a key exists already, or the key cannot be stored
 */
async function createFirstKey (app: FastifyInstance, username: string): Promise<string | undefined> {
  if (app.settings.current.keys.size > 0) return undefined
  const admin = { key: `user ${username}`, kind: 'user', user: username, username, isAdmin: true } as const
  try {
    return (await app.keys.create(admin, { name: 'first key', kind: 'user', owner: username })).data.token
  } catch (error) {
    app.log.warn(`The first key could not be stored: ${messageOf(error)}`)
    return undefined
  }
}

/**
 * Locks DATA_DIR until this process exits: a second gateway with another settings file would overwrite the keys, the
 * catalogues and the credential of the command line. Not called with DB_URL, since replicas may share DATA_DIR. If the
 * folder is not writable, it stays unlocked, since nothing in it can be overwritten.
 * @throws Error if another gateway holds the lock
 */
async function lockDataDir (dataDir: string): Promise<void> {
  const lock = new FileLock(join(dataDir, 'gateway'))
  try {
    makeFolder(dataDir, 'DATA_DIR')
    await lock.acquire()
    process.once('exit', () => { lock.release() })
  } catch (error) {
    if (!(error instanceof LockHeldError)) return
    throw new Error(
      `DATA_DIR ${dataDir} is used by another gateway (process ${error.pid ?? 'unknown'}). Stop that process first, ` +
      'or start this one with another DATA_DIR and another SETTINGS_PATH.'
    )
  }
}

/** Writes the credential for `tool-hub` commands of the user who runs this process, and removes it at the exit. */
function writeCommandLineCredential (app: FastifyInstance, dataDir: string, access: AccessFile): void {
  try {
    makeFolder(dataDir, 'DATA_DIR')
    writeAccessFile(dataDir, access)
    process.once('exit', () => { removeAccessFile(dataDir, access.token) })
  } catch (error) {
    app.log.warn(
      `The command line has no credential, since ${join(dataDir, 'command-line.json')} cannot be written ` +
      `(${messageOf(error)}). Free some space in DATA_DIR, or make it writable, and start again; ` +
      'or set TOOL_HUB_URL and TOOL_HUB_KEY for the command line.'
    )
  }
}

// The gateway keeps running when the program that reads its output ends, as with `| head`.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
process.on('exit', createLostTerminalCloser(closeSync))

/**
 * Prints a sentence about the failed start on stderr: as text on a terminal, otherwise in the format of the log.
 * @param level the log level in numbers of pino: 40 is `warn`, 60 is `fatal`
 */
function printFailure (sentence: string, level: number): void {
  const line = process.stderr.isTTY
    ? sentence
    : JSON.stringify({ level, time: Date.now(), pid: process.pid, msg: sentence })
  process.stderr.write(`${line}\n`)
}

start().catch((error: unknown) => {
  for (const sentence of earlyWarnings) printFailure(sentence, 40)
  printFailure(messageOf(error), 60)
  process.exit(1)
})

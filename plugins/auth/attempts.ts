import { normalizeIP } from '@fastify/rate-limit'
import { foldName } from '../../db/invariants.ts'
import { errors } from '../errors/list.ts'
import { sha256 } from '../secrets/hash.ts'
import { limits } from '../limits/index.ts'

/** Counts one attempt under a key. @returns 0, or when there were too many, the seconds until the count starts again */
export type Count<Request> = (request: Request, key: string) => Promise<number>

/** The checks under one key, which run one after the other. `waiting` includes the running one. */
interface Queue { waiting: number, last: Promise<unknown> }

/** Rate limits for logins and registrations: by user and address over time, and by the number of concurrent requests. */
export class Attempts<Request extends { ip: string }> {
  readonly #failure: Count<Request>
  readonly #registration: Count<Request>
  readonly #reset: (key: string) => Promise<void>
  readonly #queues = new Map<string, Queue>()
  #free: number = limits.passwordRequests

  /**
   * @param failure counts failed logins
   * @param registration counts registrations
   * @param reset sets the count of failed logins under a key back to 0
   */
  constructor (failure: Count<Request>, registration: Count<Request>, reset: (key: string) => Promise<void>) {
    this.#failure = failure
    this.#registration = registration
    this.#reset = reset
  }

  /**
   * Checks a user's password. The passwords for one user from one address are checked one after the other, and each counts as a failure
   * before its check, so that parallel guesses get no more attempts than others. The right password resets the count.
   * @param check returns what it found, or undefined for a wrong password
   * @throws TooManyFailures, TooManyRequests, TooManyLogins
   */
  async check<Found> (request: Request, username: string, check: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const key = `login ${sha256(`${foldName(username)}\n${normalizeIP(request.ip, 64)}`)}`
    return await this.#bounded(async () => await this.#queued(key, async () => {
      const seconds = await this.#failure(request, key)
      if (seconds > 0) throw new errors.TooManyFailures(seconds)
      const found = await check()
      if (found !== undefined) await this.#reset(key)
      return found
    }))
  }

  /** Registers an account. Every attempt counts under the caller's address. @throws TooManyRequests, TooManyLogins */
  async register<Made> (request: Request, make: () => Promise<Made>): Promise<Made> {
    return await this.#bounded(async () => {
      const seconds = await this.#registration(request, `register ${sha256(normalizeIP(request.ip, 64))}`)
      if (seconds > 0) throw new errors.TooManyRequests(seconds)
      return await make()
    })
  }

  /** Runs work unless `limits.passwordRequests` are in progress. @throws TooManyLogins */
  async #bounded<Result> (work: () => Promise<Result>): Promise<Result> {
    if (this.#free === 0) throw new errors.TooManyLogins()
    this.#free--
    try {
      return await work()
    } finally {
      this.#free++
    }
  }

  /** Runs work after all earlier work under the same key. @throws TooManyRequests when too much is queued */
  async #queued<Result> (key: string, work: () => Promise<Result>): Promise<Result> {
    const queue = this.#queues.get(key) ?? { waiting: 0, last: Promise.resolve() }
    if (queue.waiting >= limits.passwordChecksPerUser) throw new errors.TooManyRequests(5)
    this.#queues.set(key, queue)
    queue.waiting++
    const running = queue.last.then(work)
    queue.last = running.catch(() => {})
    try {
      return await running
    } finally {
      if (--queue.waiting === 0) this.#queues.delete(key)
    }
  }
}

import { normalizeIP } from '@fastify/rate-limit'
import { foldName } from '../../../db/invariants.ts'
import { errors } from '../../base/errors/index.ts'
import { ownerOfAddress, Semaphore, Shares, baseLimits } from '../../base/limits/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { Refusals } from './refusals.ts'
import { identityLimits } from '../limits.ts'

/** Counts one attempt under a key. @returns 0; or, beyond the limit, the seconds until the count is reset */
export type Count<Request> = (request: Request, key: string) => Promise<number>

/**
 * Counters: failed logins, registrations of accounts and of OAuth clients, authorization requests, wrong secrets of
 * clients, uses of templates, social logins.
 */
interface Counts<Request> {
  readonly failure: Count<Request>
  readonly registration: Count<Request>
  readonly client: Count<Request>
  readonly authorization: Count<Request>
  readonly secret: Count<Request>
  readonly template: Count<Request>
  readonly social: Count<Request>
}

/** The checks under one key, which run one at a time. `waiting` includes the running one. */
interface Queue { waiting: number, last: Promise<unknown> }

/**
 * Rate limits for logins and registrations: per user and address over time, and on the number of concurrent requests.
 */
export class Attempts<Request extends { ip: string }> {
  readonly #counts: Counts<Request>
  readonly #reset: (key: string) => Promise<void>
  readonly #refusals: Pick<Refusals, 'note' | 'lockedOut'>
  readonly #queues = new Map<string, Queue>()
  readonly #shares = new Shares(identityLimits.passwordRequests, 'logins')
  /** Limits concurrent password hashes. Client addresses take turns. */
  readonly #turns = new Semaphore({ places: baseLimits.concurrentHashes })

  /**
   * @param reset resets the count of failed logins under a key
   * @param refusals records wrong passwords and secrets
   */
  constructor (
    counts: Counts<Request>, reset: (key: string) => Promise<void>, refusals: Pick<Refusals, 'note' | 'lockedOut'>
  ) {
    this.#counts = counts
    this.#refusals = refusals
    this.#reset = reset
  }

  /**
   * Checks a user's password. Passwords for one user from one address are checked one at a time, and each is counted as
   * a failure before its check, so that parallel guesses get no additional attempts. The right password resets the
   * count.
   * @param check returns what it found, or undefined for a wrong password
   * @throws TooManyFailures, TooManyRequests, ShareError
   */
  async check<Found> (
    request: Request, username: string, check: () => Promise<Found | undefined>
  ): Promise<Found | undefined> {
    const key = `login ${sha256(`${foldName(username)}\n${normalizeIP(request.ip, 64)}`)}`
    return await this.#bounded(request, async () => await this.#queued(key, async () => {
      const seconds = await this.#counts.failure(request, key)
      if (seconds > 0) throw this.#lockedOut('password', request, username, seconds)
      const found = await this.#inTurn(request, check)
      if (found !== undefined) await this.#reset(key)
      else this.#refusals.note('password', request.ip, username)
      return found
    }))
  }

  /** Registers an account. Every attempt counts under the caller's address. @throws TooManyRequests, ShareError */
  async register<Made> (request: Request, make: () => Promise<Made>): Promise<Made> {
    return await this.#bounded(request, async () => {
      const seconds = await this.#counts.registration(request, `register ${sha256(normalizeIP(request.ip, 64))}`)
      if (seconds > 0) throw new errors.TooManyRequests(seconds)
      return await this.#inTurn(request, make)
    })
  }

  /** Counts the registration of an OAuth client under the caller's address. @throws TooManyRequests */
  async countClient (request: Request): Promise<void> {
    await this.#countAt(request, 'client', this.#counts.client)
  }

  /** Counts an authorization request under the caller's address. @throws TooManyRequests */
  async countAuthorization (request: Request): Promise<void> {
    await this.#countAt(request, 'authorization', this.#counts.authorization)
  }

  /** Counts an export or import of a template under the caller's owner (`access/owner.ts`). @throws TooManyRequests */
  async countTemplate (request: Request, owner: string): Promise<void> {
    const seconds = await this.#counts.template(request, `template ${sha256(owner)}`)
    if (seconds > 0) throw new errors.TooManyRequests(seconds)
  }

  /** Counts the start or the end of a social login under the caller's address. @throws TooManyRequests */
  async countSocial (request: Request): Promise<void> {
    await this.#countAt(request, 'social', this.#counts.social)
  }

  async #countAt (request: Request, what: string, count: Count<Request>): Promise<void> {
    const seconds = await count(request, `${what} ${sha256(normalizeIP(request.ip, 64))}`)
    if (seconds > 0) throw new errors.TooManyRequests(seconds)
  }

  /**
   * Checks the secret of an OAuth client, under the rules of `check`: secrets of one client from one address are
   * checked one at a time, and the right one resets the count.
   * @throws TooManyFailures, TooManyRequests
   */
  async checkSecret (request: Request, clientId: string, check: () => boolean): Promise<boolean> {
    const key = `secret ${sha256(`${clientId}\n${normalizeIP(request.ip, 64)}`)}`
    return await this.#queued(key, async () => {
      const seconds = await this.#counts.secret(request, key)
      if (seconds > 0) throw this.#lockedOut('secret', request, clientId, seconds)
      const isRight = check()
      if (isRight) await this.#reset(key)
      else this.#refusals.note('secret', request.ip, clientId)
      return isRight
    })
  }

  #lockedOut (kind: 'password' | 'secret', { ip }: Request, name: string, seconds: number): Error {
    this.#refusals.lockedOut(kind, ip, name, seconds)
    return new errors.TooManyFailures(seconds)
  }

  /**
   * Runs work in one of `identityLimits.passwordRequests` slots, of which each address may hold a share.
   * @throws ShareError
   */
  async #bounded<Result> ({ ip }: Request, work: () => Promise<Result>): Promise<Result> {
    const release = this.#shares.take(ownerOfAddress(ip))
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Runs work that hashes a password once a hash slot is free; addresses take turns. */
  async #inTurn<Result> ({ ip }: Request, work: () => Promise<Result>): Promise<Result> {
    const leave = await this.#turns.take(ownerOfAddress(ip))
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /** Runs work after all earlier work under the same key. @throws TooManyRequests when the queue is full */
  async #queued<Result> (key: string, work: () => Promise<Result>): Promise<Result> {
    const queue = this.#queues.get(key) ?? { waiting: 0, last: Promise.resolve() }
    if (queue.waiting >= identityLimits.passwordChecksPerUser) throw new errors.TooManyRequests(5)
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

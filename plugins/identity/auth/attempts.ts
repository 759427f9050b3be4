import { normalizeIP } from '@fastify/rate-limit'
import { foldUsername } from '../../../db/invariants.ts'
import { errors } from '../../base/errors/index.ts'
import { ownerOfAddress, Semaphore, Shares, baseLimits } from '../../base/limits/index.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { CredentialRefusals } from './refusals.ts'
import { identityLimits } from '../limits.ts'

/** Counts one attempt under a key. @returns 0 within the limit, otherwise the seconds until the counter is reset */
export type CountAttempt<Request> = (request: Request, key: string) => Promise<number>

/**
 * The kinds of attempts, each with a counter: failed logins, registrations of accounts and of OAuth clients,
 * authorization requests, wrong client secrets, exports and imports of templates, starts and ends of social logins.
 */
type AttemptKind = 'failure' | 'registration' | 'client' | 'authorization' | 'secret' | 'template' | 'social'

type AttemptCounters<Request> = Readonly<Record<AttemptKind, CountAttempt<Request>>>

/** The checks under one key, which run one at a time. `waiting`: their number, including the running one. */
interface Queue { waiting: number, last: Promise<unknown> }

/** Rate limits for logins and registrations: per user and address over time, and for concurrent requests. */
export class AttemptLimiter<Request extends { ip: string }> {
  readonly #counts: AttemptCounters<Request>
  readonly #reset: (key: string) => Promise<void>
  readonly #refusals: Pick<CredentialRefusals, 'note' | 'noteLockOut'>
  readonly #queues = new Map<string, Queue>()
  readonly #shares = new Shares(identityLimits.passwordRequests, 'logins')
  /** Limits concurrent password hashes. Client addresses take turns. */
  readonly #turns = new Semaphore({ places: baseLimits.concurrentHashes })

  /**
   * @param reset resets the counter under a key
   * @param refusals records wrong passwords and secrets
   */
  constructor (
    counts: AttemptCounters<Request>, reset: (key: string) => Promise<void>,
    refusals: Pick<CredentialRefusals, 'note' | 'noteLockOut'>
  ) {
    this.#counts = counts
    this.#refusals = refusals
    this.#reset = reset
  }

  /**
   * Checks a user's password. Passwords for one user from one address are checked one at a time, and each is counted as
   * a failure before its check, so that parallel guesses get no additional attempts. The right password resets the
   * counter.
   * @param check returns the user, or undefined for a wrong password
   * @throws TooManyFailures, TooManyRequests, ShareError
   */
  async checkPassword<Found> (
    request: Request, username: string, check: () => Promise<Found | undefined>
  ): Promise<Found | undefined> {
    const key = `login ${sha256(`${foldUsername(username)}\n${normalizeIP(request.ip, 64)}`)}`
    return await this.#inSlot(request, async () => await this.#inQueue(key, async () => {
      const seconds = await this.#counts.failure(request, key)
      if (seconds > 0) throw this.#lockOutError('password', request, username, seconds)
      const found = await this.#inTurn(request, check)
      if (found !== undefined) await this.#reset(key)
      else this.#refusals.note('password', request.ip, username)
      return found
    }))
  }

  /** Registers an account. Every attempt is counted under the caller's address. @throws TooManyRequests, ShareError */
  async registerAccount<Made> (request: Request, make: () => Promise<Made>): Promise<Made> {
    return await this.#inSlot(request, async () => {
      await this.count('registration', request)
      return await this.#inTurn(request, make)
    })
  }

  /**
   * Counts an attempt.
   * @param owner the user, key or address to whom it is charged; by default, the caller's address
   * @throws TooManyRequests
   */
  async count (kind: AttemptKind, request: Request, owner = normalizeIP(request.ip, 64)): Promise<void> {
    const seconds = await this.#counts[kind](request, `${kind} ${sha256(owner)}`)
    if (seconds > 0) throw new errors.TooManyRequests(seconds)
  }

  /**
   * Checks the secret of an OAuth client in the same way as `checkPassword`: secrets of one client from one address are
   * checked one at a time, and the right one resets the counter.
   * @throws TooManyFailures, TooManyRequests
   */
  async checkClientSecret (request: Request, clientId: string, check: () => boolean): Promise<boolean> {
    const key = `secret ${sha256(`${clientId}\n${normalizeIP(request.ip, 64)}`)}`
    return await this.#inQueue(key, async () => {
      const seconds = await this.#counts.secret(request, key)
      if (seconds > 0) throw this.#lockOutError('secret', request, clientId, seconds)
      const isRight = check()
      if (isRight) await this.#reset(key)
      else this.#refusals.note('secret', request.ip, clientId)
      return isRight
    })
  }

  #lockOutError (kind: 'password' | 'secret', { ip }: Request, name: string, seconds: number): Error {
    this.#refusals.noteLockOut(kind, ip, name, seconds)
    return new errors.TooManyFailures(seconds)
  }

  /** Runs work in one of `identityLimits.passwordRequests` slots, which client addresses share. @throws ShareError */
  async #inSlot<Result> ({ ip }: Request, work: () => Promise<Result>): Promise<Result> {
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

  /** Runs work after all earlier work under the same key. @throws TooManyRequests if the queue is full */
  async #inQueue<Result> (key: string, work: () => Promise<Result>): Promise<Result> {
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

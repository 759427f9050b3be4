import { normalizeIP } from '@fastify/rate-limit'
import { foldName } from '../../db/invariants.ts'
import { errors } from '../errors/list.ts'
import { sha256 } from '../secrets/hash.ts'
import { limits } from '../limits/index.ts'

/** Counts one more under a key. @returns how many seconds until the count starts anew, when there are too many; otherwise 0 */
export type Count<Request> = (request: Request, key: string) => Promise<number>

/** Those who wait for their turn under one key. */
interface Queue { waiting: number, last: Promise<unknown> }

/** What strangers try with passwords: bounded in how often, by user and address, and in how much at once. */
export class Attempts<Request extends { ip: string }> {
  readonly #failure: Count<Request>
  readonly #registration: Count<Request>
  readonly #forget: (key: string) => Promise<void>
  readonly #turns = new Map<string, Queue>()
  #places: number = limits.passwordRequests

  constructor (failure: Count<Request>, registration: Count<Request>, forget: (key: string) => Promise<void>) {
    this.#failure = failure
    this.#registration = registration
    this.#forget = forget
  }

  /**
   * Checks a user's password. Those of one user from one address are checked one after the other, and each counts before it is
   * checked, so that parallel guesses have no more tries than others; the right password takes the count back.
   * @param check what it found; undefined: the password is wrong
   * @throws TooManyFailures, TooManyRequests, TooManyLogins
   */
  async check<Found> (request: Request, username: string, check: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const key = `login ${sha256(`${foldName(username)}\n${normalizeIP(request.ip, 64)}`)}`
    return await this.#inPlace(async () => await this.#inTurn(key, async () => {
      const seconds = await this.#failure(request, key)
      if (seconds > 0) throw new errors.TooManyFailures(seconds)
      const found = await check()
      if (found !== undefined) await this.#forget(key)
      return found
    }))
  }

  /** Makes an account for a stranger. Every try counts, for its address. @throws TooManyRequests, TooManyLogins */
  async register<Made> (request: Request, make: () => Promise<Made>): Promise<Made> {
    return await this.#inPlace(async () => {
      const seconds = await this.#registration(request, `register ${sha256(normalizeIP(request.ip, 64))}`)
      if (seconds > 0) throw new errors.TooManyRequests(seconds)
      return await make()
    })
  }

  async #inPlace<Result> (work: () => Promise<Result>): Promise<Result> {
    if (this.#places === 0) throw new errors.TooManyLogins()
    this.#places--
    try {
      return await work()
    } finally {
      this.#places++
    }
  }

  async #inTurn<Result> (key: string, work: () => Promise<Result>): Promise<Result> {
    const turns = this.#turns.get(key) ?? { waiting: 0, last: Promise.resolve() }
    if (turns.waiting >= limits.passwordChecksPerUser) throw new errors.TooManyRequests(5)
    this.#turns.set(key, turns)
    turns.waiting++
    const turn = turns.last.then(work)
    turns.last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      if (--turns.waiting === 0) this.#turns.delete(key)
    }
  }
}

import type { Counters, Snapshot } from '../../../db/store.ts'
import { RuleRefusalError } from '../../../protocol/errors.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { Quota } from '../../../schemas/quotas.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { extensionsLimits } from '../limits.ts'
import { counterKeys, quotaSubjectsOf, quotaPeriodInMs } from './targets.ts'

type QuotasSnapshot = Pick<Snapshot, 'quotas' | 'teams' | 'users'>

interface QuotasDeps {
  readonly counters: Pick<Counters, 'take' | 'giveBack' | 'read'>
  readonly snapshot: () => QuotasSnapshot
  /** Reports to admins that a quota is used up, once per period on all replicas. */
  readonly reportExhausted: (quota: Quota, freeAt: Date) => void
  readonly now: () => number
}

/** The counters that apply to a call. */
interface UsedCounters {
  /** The counters that have counted the call. `window`: the period of the quota, in ms. */
  readonly calls: ReadonlyArray<{ readonly key: string, readonly window: number, readonly limit: number }>
  /** The counters to which the tokens of the result are added, as pairs of key and period (in ms). */
  readonly tokens: ReadonlyArray<readonly [string, number]>
}

/** Returns the enabled quotas, in order. */
const activeQuotas = memoized((quotas: Snapshot['quotas']): readonly Quota[] =>
  [...quotas.values()].filter(({ enabled }) => enabled !== false))

/** Limits calls by quotas. The counters are shared by all replicas. */
export class Quotas {
  readonly #deps: QuotasDeps
  readonly #taken = new WeakMap<GatewayCall['exchange'], UsedCounters>()
  /** For each counter that was reported as used up: the time when it becomes free, in ms since 1970. */
  readonly #notifiedUntil = new BoundedMap<string, number>(extensionsLimits.quotas.reported)

  constructor (deps: QuotasDeps) {
    this.#deps = deps
  }

  /**
   * Counts a call in the quotas that apply to it.
   * @param isResult whether the request fetches the result of a call that was counted before; then only tokens are
   *   checked
   * @throws RuleRefusalError if a quota is used up; then no quota counts the call
   */
  take (call: GatewayCall, isResult = false): Promise<void> | undefined {
    const snapshot = this.#deps.snapshot()
    const all = activeQuotas(snapshot.quotas)
    return all.length === 0 ? undefined : this.#takeFrom(call, all, snapshot, isResult)
  }

  /** Whether a quota counts the tokens of a call's result. */
  countsTokens ({ exchange }: GatewayCall): boolean { return (this.#taken.get(exchange)?.tokens.length ?? 0) > 0 }

  /** Adds a number of tokens to the quotas that count the tokens of a call's result. */
  async addTokens ({ exchange }: GatewayCall, tokens: number): Promise<void> {
    for (const [key, window] of this.#taken.get(exchange)?.tokens ?? []) {
      await this.#deps.counters.take(key, tokens, window)
    }
  }

  /**
   * Undoes the counting of a call that waits for the client's input, since the next request of the call is counted
   * again. The number of refunds is bounded, since a client may repeat the first request of a call endlessly.
   */
  async refund ({ exchange }: Pick<GatewayCall, 'exchange'>): Promise<void> {
    const { counters } = this.#deps
    const { calls = [] } = this.#taken.get(exchange) ?? {}
    this.#taken.delete(exchange)
    for (const { key, window, limit } of calls) {
      const { isTaken } = await counters.take(`${key} rounds`, 1, window, limit * extensionsLimits.quotas.rounds)
      if (isTaken) await counters.giveBack(key, 1)
    }
  }

  async #takeFrom (
    call: GatewayCall, quotas: readonly Quota[], snapshot: QuotasSnapshot, isResult: boolean
  ): Promise<void> {
    const { counters } = this.#deps
    const subjects = quotaSubjectsOf(call, snapshot)
    const calls: Array<UsedCounters['calls'][number]> = []
    const tokens: Array<readonly [string, number]> = []
    this.#taken.set(call.exchange, { calls, tokens })
    for (const quota of quotas) {
      const window = quotaPeriodInMs(quota)
      const keys = counterKeys(quota, subjects)
      for (const key of keys) {
        if (quota.resultTokens !== undefined) {
          const { count } = await counters.read(`${key} tokens`)
          if (count >= quota.resultTokens) await this.#refuse(call, quota, keys, isResult)
          tokens.push([`${key} tokens`, window])
        }
        if (quota.calls === undefined || isResult) continue
        const { isTaken } = await counters.take(key, 1, window, quota.calls)
        if (!isTaken) await this.#refuse(call, quota, keys, isResult)
        calls.push({ key, window, limit: quota.calls })
      }
    }
  }

  async #refuse (call: GatewayCall, quota: Quota, keys: readonly string[], isResult: boolean): Promise<never> {
    const { counters, now } = this.#deps
    const { calls = [] } = this.#taken.get(call.exchange) ?? {}
    this.#taken.delete(call.exchange)
    for (const { key: taken } of calls) await counters.giveBack(taken, 1)
    const name = JSON.stringify(quota.name)
    const limits = { tokens: quota.resultTokens, calls: isResult ? undefined : quota.calls }
    if (limits.tokens === 0 || limits.calls === 0) {
      // A quota of 0 never becomes free, but an admin may change it.
      throw new RuleRefusalError(
        'quota', `The quota ${name} allows no calls`, { retryAfter: quotaPeriodInMs(quota) / 1_000 }
      )
    }
    // The quota becomes free when all of its exhausted counters are free.
    let last = { key: keys[0] ?? '', left: 0 }
    for (const key of keys) {
      for (const [each, limit] of [[`${key} tokens`, limits.tokens], [key, limits.calls]] as const) {
        if (limit === undefined) continue
        const { count, left } = await counters.read(each)
        if (count >= limit && left > last.left) last = { key: each, left }
      }
    }
    const freeAt = new Date(now() + last.left)
    if ((this.#notifiedUntil.get(last.key) ?? 0) <= now()) {
      this.#notifiedUntil.set(last.key, freeAt.getTime())
      // Of all replicas, the first reports it. The mark expires a second early, so that it is gone in the next period.
      const { isTaken } = await counters.take(`${last.key} reported`, 1, Math.max(1, last.left - 1_000), 1)
      if (isTaken) this.#deps.reportExhausted(quota, freeAt)
    }
    const seconds = Math.max(1, Math.ceil(last.left / 1_000))
    const sentence = `The quota ${name} is used up (${amountOf(quota)}). ` +
      `It is available again in ${seconds} s, at ${freeAt.toISOString()}`
    throw new RuleRefusalError('quota', sentence, { retryAfter: seconds })
  }
}

function amountOf ({ calls, resultTokens, per }: Quota): string {
  const amounts = [
    ...calls === undefined ? [] : [`${calls} ${calls === 1 ? 'call' : 'calls'}`],
    ...resultTokens === undefined ? [] : [`${resultTokens} ${resultTokens === 1 ? 'token' : 'tokens'} of results`]
  ]
  return `${amounts.join(' and ')} a ${per}`
}

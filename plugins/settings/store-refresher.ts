import type { Store } from '../../db/store.ts'
import { waitAtMost } from '../../protocol/wait-at-most.ts'
import { TokenBucket } from '../base/limits/index.ts'
import { settingsLimits } from './limits.ts'

/**
 * Checks the store for changes of other replicas when a caller presents unknown credentials. One look-up runs at a time
 * and serves all callers that asked before it started. The number of look-ups per second is limited, so that wrong
 * credentials cannot load the database.
 */
export class OnDemandStoreRefresher {
  readonly #store: Pick<Store, 'refresh'>
  readonly #rate =
    new TokenBucket({ burst: settingsLimits.freshLookUps.perSecond, perSecond: settingsLimits.freshLookUps.perSecond })

  #running: Promise<boolean> | undefined
  /**
   * The look-up after the running one. A caller that arrives during a look-up waits for this one, since the running one
   * may have read the database before the change that the caller depends on.
   */
  #next: Promise<boolean> | undefined

  constructor (store: Pick<Store, 'refresh'>) {
    this.#store = store
  }

  /**
   * Looks up changes in the store.
   * @returns a promise, which resolves to true when all changes made before the call have arrived, and to false if the
   *   store fails or is too slow; undefined if no look-up is made
   */
  refresh (): Promise<boolean> | undefined {
    if (!this.#store.refresh) return undefined
    if (this.#next) return this.#next
    if (!this.#rate.take('')) return undefined
    if (!this.#running) return this.#start()
    this.#next = this.#running.then(async () => {
      this.#next = undefined
      return await this.#start()
    })
    return this.#next
  }

  #start (): Promise<boolean> {
    const answered = this.#store.refresh?.().then(() => true, () => false) ?? Promise.resolve(true)
    this.#running = waitAtMost(settingsLimits.freshLookUps.timeout, answered, () => false)
      .finally(() => { this.#running = undefined })
    return this.#running
  }
}

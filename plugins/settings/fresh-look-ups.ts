import type { Store } from '../../db/store.ts'
import { TokenBucket } from '../base/limits/index.ts'
import { settingsLimits } from './limits.ts'

/**
 * Looks for changes of other replicas on behalf of callers with unknown credentials. One look-up runs at a time, for
 * all who asked before it started, and few start per second: wrong credentials are no load for the database.
 */
export class FreshLookUps {
  readonly #store: Pick<Store, 'refresh'>
  readonly #rate =
    new TokenBucket({ burst: settingsLimits.freshLookUps.perSecond, perSecond: settingsLimits.freshLookUps.perSecond })

  #running: Promise<boolean> | undefined
  /**
   * The look-up that starts after the running one, which may have read the database before the caller's change was
   * made.
   */
  #next: Promise<boolean> | undefined

  constructor (store: Pick<Store, 'refresh'>) {
    this.#store = store
  }

  /**
   * Resolves when the changes that were made before the call have arrived, with true; with false when the store has
   * failed or is too slow. Undefined: nothing is looked up.
   */
  request (): Promise<boolean> | undefined {
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
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => { resolve(false) }, settingsLimits.freshLookUps.timeout).unref()
    })
    const answered = this.#store.refresh?.().then(() => true, () => false)
    const lookUp = Promise.race([answered ?? true, timeout]).then((hasAnswered) => {
      clearTimeout(timer)
      this.#running = undefined
      return hasAnswered
    })
    this.#running = lookUp
    return lookUp
  }
}

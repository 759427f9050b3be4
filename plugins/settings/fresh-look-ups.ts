import type { Store } from '../../db/store.ts'
import { limits } from '../base/limits/index.ts'

/**
 * Looks for changes of other replicas on behalf of callers with unknown credentials. One look-up runs at a time, for all who asked before
 * it started, and few start per second: wrong credentials are no load for the database.
 */
export class FreshLookUps {
  readonly #store: Pick<Store, 'refresh'>
  #running: Promise<boolean> | undefined
  /** The look-up that starts after the running one, which may have read the database before the caller's change was made. */
  #next: Promise<boolean> | undefined
  #started = 0
  #second = 0

  constructor (store: Pick<Store, 'refresh'>) {
    this.#store = store
  }

  /**
   * Resolves when the changes that were made before the call have arrived, with true; with false when the store has failed or is too slow.
   * Undefined: nothing is looked up.
   */
  request (): Promise<boolean> | undefined {
    if (!this.#store.refresh) return undefined
    if (this.#next) return this.#next
    if (!this.#mayStart()) return undefined
    if (!this.#running) return this.#start()
    this.#next = this.#running.then(async () => {
      this.#next = undefined
      return await this.#start()
    })
    return this.#next
  }

  #mayStart (): boolean {
    const second = Math.floor(performance.now() / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#started = 0
    }
    return ++this.#started <= limits.freshLookUps.perSecond
  }

  #start (): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => { resolve(false) }, limits.freshLookUps.timeout).unref()
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

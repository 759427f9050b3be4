import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'

/** How often to look, ms: what the system does not tell of is still seen well within 3 s. */
const period = 1_000
/** How long to wait for the rest of a burst of events, ms. */
const pause = 50

/** Says when a file may have changed: at the system's word, and once a second anyway. Keeps no process alive. */
export class Watcher {
  readonly #timer: NodeJS.Timeout
  readonly #watch: FSWatcher | undefined
  #soon: NodeJS.Timeout | undefined

  constructor (path: string, look: () => void) {
    this.#timer = setInterval(look, period).unref()
    try {
      // The folder, since a replaced file is another one. Where it cannot be watched the timer is enough.
      this.#watch = watch(dirname(path), { persistent: false }, (_, name) => {
        if (name !== null && name !== basename(path)) return
        this.#soon ??= setTimeout(() => { this.#soon = undefined; look() }, pause).unref()
      })
      this.#watch.on('error', () => { this.#watch?.close() })
    } catch {}
  }

  close (): void {
    clearInterval(this.#timer)
    clearTimeout(this.#soon)
    this.#watch?.close()
  }
}

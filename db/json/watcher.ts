import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'

/** Poll interval in ms, for changes that the system does not report: they are to be noticed well within 3 s. */
const pollInterval = 1_000
/** Delay after an event of the system, in ms, so that a burst of events leads to one check. */
const debounce = 50

/**
 * Calls back when a file may have changed: on events of the file system, and once a second anyway. Does not keep the
 * process alive.
 */
export class Watcher {
  readonly #timer: NodeJS.Timeout
  readonly #watch: FSWatcher | undefined
  #debouncing: NodeJS.Timeout | undefined

  constructor (path: string, onChange: () => void) {
    this.#timer = setInterval(onChange, pollInterval).unref()
    try {
      // The folder is watched, since a replaced file is a different file. If that fails, the timer is enough.
      this.#watch = watch(dirname(path), { persistent: false }, (_, name) => {
        if (name !== null && name !== basename(path)) return
        this.#debouncing ??= setTimeout(() => { this.#debouncing = undefined; onChange() }, debounce).unref()
      })
      this.#watch.on('error', () => { this.#watch?.close() })
    } catch {}
  }

  close (): void {
    clearInterval(this.#timer)
    clearTimeout(this.#debouncing)
    this.#watch?.close()
  }
}

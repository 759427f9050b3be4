import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'

/** Poll interval in ms. It is short, since changes that the system does not report must be noticed within 3 s. */
const pollInterval = 1_000
/** Delay after a file system event, in ms, so that a burst of events causes one check. */
const debounceDelay = 50

/**
 * Calls `onChange` whenever a file may have changed: after file system events, and once a second. Does not keep the
 * process alive.
 */
export class FileWatcher {
  readonly #timer: NodeJS.Timeout
  readonly #watch: FSWatcher | undefined
  #debouncing: NodeJS.Timeout | undefined

  constructor (path: string, onChange: () => void) {
    this.#timer = setInterval(onChange, pollInterval).unref()
    try {
      // The folder is watched instead of the file, which is often replaced by a new file. If this fails, the timer is
      // enough.
      this.#watch = watch(dirname(path), { persistent: false }, (_, name) => {
        if (name !== null && name !== basename(path)) return
        this.#debouncing ??= setTimeout(() => { this.#debouncing = undefined; onChange() }, debounceDelay).unref()
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

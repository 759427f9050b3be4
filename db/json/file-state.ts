import { errorCode } from '../errors.ts'
import type { StorageError } from '../store.ts'
import { openFilesAdvice } from './load.ts'

/** How long an invalid edit must persist before it is logged, in ms: an editor may still be writing. */
const reportInvalidAfter = 500

/** Records whether the settings file can be read and written, and is valid. Each change of this is logged once. */
export class SettingsFileState {
  readonly #path: string
  readonly #warn: (message: string) => void
  /** Why the content of the file is invalid. `since`: when that was first detected, in ms since the epoch. */
  #invalid: { reason: string, since: number, isReported: boolean } | undefined
  /** Whether the invalid content was logged, but not yet its correction. */
  #hasLoggedInvalid = false
  /**
   * Set while the file is missing: `seen` at the first check, `reported` once this was logged. It is logged at the
   * second check, since an editor may be about to replace the file.
   */
  #missing: 'seen' | 'reported' | undefined
  /** The reason why the system cannot read the file, whose content is then unknown. */
  #readFailure: string | undefined
  /** The failure of the last write, with its time in ms since the epoch. */
  #writeFailure: { reason: string, since: number } | undefined

  constructor (path: string, warn: (message: string) => void) {
    this.#path = path
    this.#warn = warn
  }

  get invalid (): { readonly reason: string } | undefined { return this.#invalid }
  get readFailure (): string | undefined { return this.#readFailure }
  get writeFailure (): { readonly reason: string, readonly since: number } | undefined { return this.#writeFailure }

  /** Records a write failure without logging it. `logWriteFailure` logs it. */
  recordWriteFailureUnlogged ({ message: reason }: StorageError): void {
    this.#writeFailure = { reason, since: Date.now() }
  }

  /**
   * Records that the file does not exist, so that it is neither invalid nor unreadable.
   * @param isKnown whether the file did not exist at the last check either
   */
  markMissing (isKnown: boolean): void {
    this.#readFailure = undefined
    this.#invalid = undefined
    if (isKnown && this.#hasLoggedInvalid) this.#logMissing()
  }

  /** Records that the content of the file is invalid. `reportInvalid` logs it. */
  markInvalid (reason: string): void {
    this.#readFailure = undefined
    if (this.#invalid?.reason !== reason) this.#invalid = { reason, since: Date.now(), isReported: false }
  }

  /** Called after each check in the background: logs when the file is missing, and when it exists again. */
  reportMissing (isMissing: boolean): void {
    if (!isMissing) {
      if (this.#missing === 'reported') this.#warn(`The settings file ${this.#path} exists again.`)
      this.#missing = undefined
    } else if (this.#missing === undefined) {
      this.#missing = 'seen'
    } else if (this.#missing === 'seen') {
      this.#missing = 'reported'
      this.#logMissing()
    }
  }

  #logMissing (): void {
    this.#hasLoggedInvalid = false
    this.#warn(`The settings file ${this.#path} no longer exists. The last settings stay in effect; the next change ` +
      'creates the file again.')
  }

  /** Records a read failure. It is logged once, until the file can be read again. */
  markReadFailure ({ message: reason }: StorageError): void {
    if (this.#readFailure === undefined) {
      this.#warn(`${this.#path}: ${reason}${openFilesAdvice(reason)} The last settings stay in effect.`)
    }
    this.#readFailure = reason
  }

  #markReadable (): void {
    if (this.#readFailure !== undefined) this.#warn(`The settings file ${this.#path} can be read again.`)
    this.#readFailure = undefined
  }

  markValid (): void {
    this.#markReadable()
    if (this.#hasLoggedInvalid) this.#warn(`The settings file ${this.#path} is valid again, and in effect.`)
    this.#hasLoggedInvalid = false
    this.#invalid = undefined
  }

  /** Called after each check in the background: logs invalid content that has persisted for `reportInvalidAfter`. */
  reportInvalid (): void {
    if (!this.#invalid || this.#invalid.isReported || Date.now() - this.#invalid.since < reportInvalidAfter) return
    this.#invalid.isReported = true
    this.#hasLoggedInvalid = true
    this.#warn(`${this.#invalid.reason} The last valid settings stay in effect, and nothing is written until the ` +
      'file is corrected.')
  }

  /** Records a write failure. It is logged once, until the file can be written again. */
  markWriteFailure ({ message: reason }: StorageError): void {
    const isKnown = this.#writeFailure !== undefined
    this.#writeFailure = { reason, since: Date.now() }
    if (!isKnown) this.logWriteFailure()
  }

  /** Logs the recorded write failure, if any. Called by `load` when the file has been read. */
  logWriteFailure (): void {
    if (!this.#writeFailure) return
    this.#warn(`The settings file ${this.#path} can be read, but not written. ${this.#writeFailure.reason}`)
  }

  /** Logs that the backup could not be overwritten after a plain-text secret was removed from the file. */
  logBackupFailure (error: unknown): void {
    this.#warn(`The backup (.bak) of the settings file ${this.#path} could not be overwritten ` +
      `(${errorCode(error) ?? 'unknown error'}), and may contain a secret in plain text that the file no longer has: ` +
      'delete the backup.')
  }

  markWritable (): void {
    if (this.#writeFailure) this.#warn(`The settings file ${this.#path} can be written again.`)
    this.#writeFailure = undefined
  }
}

import { errorCode } from '../errors.ts'
import type { StorageError } from '../store.ts'
import { openFilesAdvice } from './load.ts'

/** How long the file must be invalid before this is logged, in ms: an editor may still be writing it. */
const reportInvalidAfter = 500

/** Tracks whether the settings file exists, can be read and written, and is valid. Logs each change once. */
export class SettingsFileHealth {
  readonly #path: string
  readonly #warn: (message: string) => void
  /** Why the content of the file is invalid. `since`: when this was first noticed, in ms since 1970. */
  #invalid: { reason: string, since: number, isReported: boolean } | undefined
  /** Whether the log says that the file is invalid, and does not say yet that it was corrected or removed. */
  #hasLoggedInvalid = false
  /**
   * Set while the file is missing: `seen` after the first check that does not find it, `reported` once this was logged.
   * Only the second check logs it, since an editor may be about to replace the file.
   */
  #missing: 'seen' | 'reported' | undefined
  /** Why the file cannot be read, as a sentence; undefined if it can. */
  #readFailure: string | undefined
  /** The last failure of a write, and its time in ms since 1970; undefined once a write has succeeded. */
  #writeFailure: { reason: string, since: number } | undefined

  constructor (path: string, warn: (message: string) => void) {
    this.#path = path
    this.#warn = warn
  }

  get invalid (): { readonly reason: string } | undefined { return this.#invalid }
  get readFailure (): string | undefined { return this.#readFailure }
  get writeFailure (): { readonly reason: string, readonly since: number } | undefined { return this.#writeFailure }

  /** Records a write failure. `logWriteFailure` logs it later. */
  recordWriteFailureUnlogged ({ message: reason }: StorageError): void {
    this.#writeFailure = { reason, since: Date.now() }
  }

  /**
   * Records that the file does not exist, so that it is neither invalid nor unreadable.
   * @param hasNeverExisted whether this process has not read or written a valid file yet
   */
  markMissing (hasNeverExisted: boolean): void {
    this.#readFailure = undefined
    this.#invalid = undefined
    if (hasNeverExisted && this.#hasLoggedInvalid) this.#logMissing()
  }

  /** Records that the content of the file is invalid. `reportInvalid` logs this later. */
  markInvalid (reason: string): void {
    this.#readFailure = undefined
    if (this.#invalid?.reason !== reason) this.#invalid = { reason, since: Date.now(), isReported: false }
  }

  /** Called after each background check: logs that the file is missing, and later that it exists again. */
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

  /** Records a read failure. Only the first one is logged, until the file can be read again. */
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

  /** Called after each background check: logs that the file has been invalid for `reportInvalidAfter`. */
  reportInvalid (): void {
    if (!this.#invalid || this.#invalid.isReported || Date.now() - this.#invalid.since < reportInvalidAfter) return
    this.#invalid.isReported = true
    this.#hasLoggedInvalid = true
    this.#warn(`${this.#invalid.reason} The last valid settings stay in effect, and nothing is written until the ` +
      'file is corrected.')
  }

  /** Records a write failure. Only the first one is logged, until the file can be written again. */
  markWriteFailure ({ message: reason }: StorageError): void {
    const isKnown = this.#writeFailure !== undefined
    this.#writeFailure = { reason, since: Date.now() }
    if (!isKnown) this.logWriteFailure()
  }

  /** Logs the recorded write failure, if there is one. Called at the start, once the file has been read. */
  logWriteFailure (): void {
    if (!this.#writeFailure) return
    this.#warn(`The settings file ${this.#path} can be read, but not written. ${this.#writeFailure.reason}`)
  }

  /** Logs that the backup could not be overwritten, although a plain-text secret was removed from the file. */
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

import type { StorageError } from '../store.ts'
import { adviceFor } from './load.ts'

/** How long an invalid edit must persist before it is logged, in ms: an editor may still be writing. */
const reportInvalidAfter = 500

/** Whether the settings file can be read and written, and is valid. Each transition is logged once. */
export class FileState {
  readonly #path: string
  readonly #warn: (message: string) => void
  /** The content of the file is invalid; `since`: when that was first detected, in ms since the epoch. */
  #invalid: { reason: string, since: number, isReported: boolean } | undefined
  /** Whether the invalid content was logged, and its end was not logged yet. */
  #isToldInvalid = false
  /** The file is missing. That is logged at the second check, since an editor may be about to replace it. */
  #missing: 'seen' | 'reported' | undefined
  /** Why the system cannot read the file, whose content is then unknown. */
  #readFailure: string | undefined
  /** The last write failed. */
  #writeFailure: { reason: string, since: number } | undefined

  constructor (path: string, warn: (message: string) => void) {
    this.#path = path
    this.#warn = warn
  }

  get invalid (): { readonly reason: string } | undefined { return this.#invalid }
  get readFailure (): string | undefined { return this.#readFailure }
  get writeFailure (): { readonly reason: string, readonly since: number } | undefined { return this.#writeFailure }

  /** Records a write failure without logging it; `tellUnwritable` logs it later. */
  keepWriteFailure ({ message: reason }: StorageError): void {
    this.#writeFailure = { reason, since: Date.now() }
  }

  /** The file does not exist. Whether its content is readable and valid is unknown until it exists again. */
  disappear (isKnown: boolean): void {
    this.#readFailure = undefined
    this.#invalid = undefined
    if (isKnown && this.#isToldInvalid) this.#tellGone()
  }

  becomeInvalid (reason: string): void {
    this.#readFailure = undefined
    if (this.#invalid?.reason !== reason) this.#invalid = { reason, since: Date.now(), isReported: false }
  }

  reportMissing (isMissing: boolean): void {
    if (!isMissing) {
      if (this.#missing === 'reported') this.#warn(`The settings file ${this.#path} is there again.`)
      this.#missing = undefined
    } else if (this.#missing === undefined) {
      this.#missing = 'seen'
    } else if (this.#missing === 'seen') {
      this.#missing = 'reported'
      this.#tellGone()
    }
  }

  #tellGone (): void {
    this.#isToldInvalid = false
    this.#warn(`The settings file ${this.#path} is gone. The last settings stay in force; the next change creates ` +
      'the file again.')
  }

  /** Records a read failure. It is logged once, until the file can be read again. */
  readFailed ({ message: reason }: StorageError): void {
    if (this.#readFailure === undefined) {
      this.#warn(`${this.#path}: ${reason}${adviceFor(reason)} The last settings stay in force.`)
    }
    this.#readFailure = reason
  }

  #becomeReadable (): void {
    if (this.#readFailure !== undefined) this.#warn(`The settings file ${this.#path} can be read again.`)
    this.#readFailure = undefined
  }

  becomeValid (): void {
    this.#becomeReadable()
    if (this.#isToldInvalid) this.#warn(`The settings file ${this.#path} is valid again, and is in force.`)
    this.#isToldInvalid = false
    this.#invalid = undefined
  }

  reportInvalid (): void {
    if (!this.#invalid || this.#invalid.isReported || Date.now() - this.#invalid.since < reportInvalidAfter) return
    this.#invalid.isReported = true
    this.#isToldInvalid = true
    this.#warn(`${this.#invalid.reason} The last valid settings stay in force, and nothing is written until the file ` +
      'is corrected.')
  }

  /** Records a write failure. It is logged once, until the file can be written again. */
  writeFailed ({ message: reason }: StorageError): void {
    const isKnown = this.#writeFailure !== undefined
    this.#writeFailure = { reason, since: Date.now() }
    if (!isKnown) this.tellUnwritable()
  }

  /** Logs a write failure that was recorded before, once the file has been read. */
  tellUnwritable (): void {
    if (!this.#writeFailure) return
    this.#warn(`The settings file ${this.#path} is read, and cannot be written. ${this.#writeFailure.reason}`)
  }

  becomeWritable (): void {
    if (this.#writeFailure) this.#warn(`The settings file ${this.#path} can be written again.`)
    this.#writeFailure = undefined
  }
}

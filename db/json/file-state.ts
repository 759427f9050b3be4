import type { StorageError } from '../store.ts'
import { adviceFor } from './load.ts'

/** How long an invalid edit must persist until it is logged, in ms: an editor may still be writing. */
const reportInvalidAfter = 500

/** Whether the settings file can be read and written, and is valid. Each change of that is logged once. */
export class FileState {
  readonly #path: string
  readonly #warn: (message: string) => void
  /** The content of the file is invalid; `since`: when that was first seen. */
  #invalid: { reason: string, since: number, isReported: boolean } | undefined
  /** The log says that the content is invalid, and not yet that it is valid again or the file gone. */
  #isToldInvalid = false
  /** The file is missing. That is reported at the second check, since an editor may be about to replace it. */
  #missing: 'seen' | 'reported' | undefined
  /** The system could not read the file; what it holds is not known. */
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

  /** Keeps a write failure without telling of it: `tellUnwritable` does. */
  keepWriteFailure ({ message: reason }: StorageError): void {
    this.#writeFailure = { reason, since: Date.now() }
  }

  /** There is no file: whether it is readable and valid again is decided when there is one. */
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

  /** Told once, until it can be read again. */
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

  /** Told once, until it can be written again. */
  writeFailed ({ message: reason }: StorageError): void {
    const isKnown = this.#writeFailure !== undefined
    this.#writeFailure = { reason, since: Date.now() }
    if (!isKnown) this.tellUnwritable()
  }

  /** Tells of a write failure that was kept, once the file has been read. */
  tellUnwritable (): void {
    if (!this.#writeFailure) return
    this.#warn(`The settings file ${this.#path} is read, and cannot be written. ${this.#writeFailure.reason}`)
  }

  becomeWritable (): void {
    if (this.#writeFailure) this.#warn(`The settings file ${this.#path} can be written again.`)
    this.#writeFailure = undefined
  }
}

/** Returns the `code` of a Node.js error, such as `ENOSPC`; undefined if the error has none. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** Returns the message of a thrown value; if the value is not an Error, the value as text. */
export const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

/**
 * The error for a storage that cannot be read or written now. `isFull`: no space is left; `isDiskFailing`: the disk
 * reports errors.
 */
export class StorageError extends Error {
  readonly isFull: boolean
  readonly isDiskFailing: boolean
  constructor (message: string, isFull: boolean, isFailing = false) {
    super(message)
    this.name = 'StorageError'
    this.isFull = isFull
    this.isDiskFailing = isFailing
  }
}

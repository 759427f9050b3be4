/** The `code` of a Node.js system error, such as `ENOSPC`; undefined if the error has none. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** The message of any thrown value. */
export const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

/**
 * Thrown if the storage cannot be read or written. `isFull`: no space is left; `isDiskFailing`: the disk reports
 * errors.
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

/** The `code` of a Node.js system error, such as `ENOSPC`; undefined if the error has none. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** The message of any thrown value. */
export const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

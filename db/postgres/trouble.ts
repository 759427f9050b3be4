import { Invalid, StorageError } from '../store.ts'

/** The code of an error or of what caused it: an SQL state, or the system's or driver's word. */
export function codeOf (error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) if ('code' in each && typeof each.code === 'string') return each.code
  return undefined
}

/** Why a database that is there, or will be, cannot be used at the moment. */
const away: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ENOTFOUND: 'its host is not known',
  EAI_AGAIN: 'its host is not known',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its host cannot be reached',
  ENOENT: 'its socket is not there',
  CONNECT_TIMEOUT: 'it does not answer',
  ETIMEDOUT: 'it does not answer',
  CONNECTION_CLOSED: 'the connection broke',
  CONNECTION_DESTROYED: 'the connection broke',
  CONNECTION_ENDED: 'the connection broke',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  '57P01': 'it is shutting down',
  '57P02': 'it is shutting down',
  '57P03': 'it is starting up or shutting down',
  25006: 'it takes no writes',
  53300: 'it has too many connections',
  57014: 'it takes too long',
  '25P03': 'it takes too long'
}
/** What no waiting helps against: somebody must do something. */
const refused: Readonly<Record<string, string>> = {
  '28P01': 'it refuses the user or the password',
  28000: 'it refuses the user, or connections from here',
  '3D000': 'there is no database of that name',
  42501: 'this user may not do that there',
  SASL_SIGNATURE_MISMATCH: 'it refuses the user or the password'
}

/** Why a connection cannot be had, as a phrase without user, password, host or SQL. */
export function phrase (error: unknown): string {
  const code = codeOf(error)
  const why = code === undefined ? undefined : away[code] ?? refused[code] ?? (code.startsWith('08') ? 'the connection broke' : undefined)
  return `${why ?? 'it reports an error'}${code === undefined ? '' : `, ${code}`}`
}

/** Whether the database went away, or cannot be written as a whole. */
export function isAway (error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && (Object.hasOwn(away, code) || Object.hasOwn(refused, code) || code.startsWith('08') || /^E[A-Z]+$/.test(code))
}

/** Whether trying again is of no use. */
export const isRefused = (error: unknown): boolean => Object.hasOwn(refused, codeOf(error) ?? '')

/** Why the database cannot be used now, as a sentence that may reach a client. */
export const awaySentence = (error: unknown): string => `The database cannot be used (${phrase(error)}).`

/** Any error as a sentence. What Drizzle says holds SQL and its values, which may be secrets. */
export const sentence = (error: unknown): string => error instanceof Error && error.cause === undefined && codeOf(error) === undefined ? error.message : awaySentence(error)

/** An error of a transaction that changed nothing, as a store throws it. */
export function storageError (error: unknown): StorageError | Invalid {
  if (error instanceof StorageError || error instanceof Invalid) return error
  const code = codeOf(error)
  if (code === '23505') return new Invalid('Something of that name is there already.')
  if (code === '54001') return new Invalid('This is nested too deeply to be stored.')
  if (code === '53100') return new StorageError('The database has no space left. Nothing was changed.', true)
  return new StorageError(`${awaySentence(error)} Nothing was changed.`, false, code === '58030')
}

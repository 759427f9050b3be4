import { Invalid, StorageError } from '../../store.ts'

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
const untrusted = 'nobody who is trusted here has signed its TLS certificate: NODE_EXTRA_CA_CERTS names a file with others to trust'
/** What no waiting helps against: somebody must do something. */
const refused: Readonly<Record<string, string>> = {
  '28P01': 'it refuses the user or the password',
  28000: 'it refuses the user, or connections from here, or those without TLS (sslmode=require)',
  '3D000': 'there is no database of that name',
  42501: 'this user may not make a schema and tables there, or not use those that are there',
  SASL_SIGNATURE_MISMATCH: 'it refuses the user or the password',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its TLS certificate is for another name than that in DB_URL',
  CERT_HAS_EXPIRED: 'its TLS certificate has expired',
  CERT_NOT_YET_VALID: 'its TLS certificate is not valid yet'
}
/** The end of a connection where TLS should begin. Node says so in words only: the code is that of every broken connection. */
const withoutTls = /before secure TLS connection was established/

function isWithoutTls (error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) if (withoutTls.test(each.message)) return true
  return false
}

/** Why a connection cannot be had, as a phrase without user, password, host or SQL. */
export function phrase (error: unknown): string {
  const code = codeOf(error)
  const why = isWithoutTls(error)
    ? 'it seems to offer no TLS, which sslmode in DB_URL asks for'
    : code === undefined
      ? undefined
      : (away[code] ?? refused[code] ?? (code.startsWith('08') ? 'the connection broke' : undefined))
  return `${why ?? 'it reports an error'}${code === undefined ? '' : `, ${code}`}`
}

/** Whether the database went away, or cannot be written as a whole. */
export function isAway (error: unknown): boolean {
  const code = codeOf(error)
  return (
    code !== undefined && (Object.hasOwn(away, code) || Object.hasOwn(refused, code) || code.startsWith('08') || /^E[A-Z]+$/.test(code))
  )
}

/** Whether a transaction gave way to another one that came first. */
export const isLostRace = (error: unknown): boolean => ['40001', '40P01'].includes(codeOf(error) ?? '')

/** Whether trying again is of no use. */
export const isRefused = (error: unknown): boolean => Object.hasOwn(refused, codeOf(error) ?? '')

/** Why the database cannot be used now, as a sentence that may reach a client. */
export const awaySentence = (error: unknown): string => `The database cannot be used (${phrase(error)}).`

/** Any error as a sentence. What Drizzle says holds SQL and its values, which may be secrets. */
export const sentence = (error: unknown): string =>
  error instanceof Error && error.cause === undefined && codeOf(error) === undefined ? error.message : awaySentence(error)

/** An error of a transaction that changed nothing, as a store throws it. */
export function storageError (error: unknown): StorageError | Invalid {
  if (error instanceof StorageError || error instanceof Invalid) return error
  const code = codeOf(error)
  if (code === '23505') return new Invalid('Something of that name is there already.')
  if (code === '54001') return new Invalid('This is nested too deeply to be stored.')
  if (code === '53100') return new StorageError('The database has no space left. Nothing was changed.', true)
  return new StorageError(`${awaySentence(error)} Nothing was changed.`, false, code === '58030')
}

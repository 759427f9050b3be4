import { InvalidChangeError, StorageError } from '../../store.ts'

/**
 * Returns the code of an error or, if it has none, of its nearest cause that has a code: an SQLSTATE, or a code of the
 * system or the driver. Undefined if none of them has a code.
 */
export function databaseErrorCode (error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    if ('code' in each && typeof each.code === 'string') return each.code
  }
  return undefined
}

/** Clauses that describe failures that may be temporary, by error code. */
const temporaryFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refused the connection',
  ENOTFOUND: 'its host was not found',
  EAI_AGAIN: 'its host was not found',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its host cannot be reached',
  ENOENT: 'its socket does not exist',
  CONNECT_TIMEOUT: 'it does not answer',
  ETIMEDOUT: 'it does not answer',
  CONNECTION_CLOSED: 'the connection was lost',
  CONNECTION_DESTROYED: 'the connection was lost',
  CONNECTION_ENDED: 'the connection was lost',
  ECONNRESET: 'the connection was lost',
  EPIPE: 'the connection was lost',
  '57P01': 'it is shutting down',
  '57P02': 'it is shutting down',
  '57P03': 'it is starting up or shutting down',
  25006: 'it is read-only',
  53300: 'it has too many connections',
  57014: 'it took too long',
  '25P03': 'it took too long'
}
/** The SQLSTATE of a statement that took too long, for example because it waited for a lock. */
export const tooLongCode = '57014'
const untrustedCertificate =
  'its TLS certificate is not signed by a trusted authority: NODE_EXTRA_CA_CERTS names a file with more to trust'
/** Clauses that describe failures that last until the configuration is changed, by error code. */
const permanentFailures: Readonly<Record<string, string>> = {
  '28P01': 'it refused the user or the password',
  28000: 'it refused the user, connections from this host, or connections without TLS (sslmode=require)',
  '3D000': 'there is no database with that name',
  42501: 'this user may not create a schema and tables in it, or may not use the existing ones',
  SASL_SIGNATURE_MISMATCH: 'it refused the user or the password',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrustedCertificate,
  SELF_SIGNED_CERT_IN_CHAIN: untrustedCertificate,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrustedCertificate,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its TLS certificate is not for the host in DB_URL',
  CERT_HAS_EXPIRED: 'its TLS certificate has expired',
  CERT_NOT_YET_VALID: 'its TLS certificate is not valid yet'
}
/**
 * Matches Node's message about a connection that closes during the TLS handshake; the error code is just ECONNRESET.
 */
const missingTlsPattern = /before secure TLS connection was established/

function isWithoutTls (error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) if (missingTlsPattern.test(each.message)) return true
  return false
}

/** Whether an SQLSTATE belongs to class 08, the connection exceptions. */
const isConnectionException = (code: string): boolean => code.startsWith('08')

function reasonOf (error: unknown, code: string | undefined): string {
  if (isWithoutTls(error)) return 'it seems not to support TLS, which sslmode in DB_URL requires'
  const known = code === undefined ? undefined : temporaryFailures[code] ?? permanentFailures[code]
  if (known !== undefined) return known
  return code !== undefined && isConnectionException(code) ? 'the connection was lost' : 'it reported an error'
}

/** Returns a clause that describes a failure, with its code, and without user, password, host or SQL. */
export function describeFailure (error: unknown): string {
  const code = databaseErrorCode(error)
  return `${reasonOf(error, code)}${code === undefined ? '' : `, ${code}`}`
}

/** Whether a failure means that the database cannot be reached, or refuses to be used at all. */
export function isDatabaseUnavailable (error: unknown): boolean {
  const code = databaseErrorCode(error)
  if (code === undefined) return false
  return Object.hasOwn(temporaryFailures, code) || Object.hasOwn(permanentFailures, code) ||
    isConnectionException(code) || /^E[A-Z]+$/.test(code)
}

/** Whether a transaction failed because of a concurrent one: serialization failure (40001) or deadlock (40P01). */
export const isConcurrencyFailure = (error: unknown): boolean =>
  ['40001', '40P01'].includes(databaseErrorCode(error) ?? '')

/** Whether a failure lasts until the configuration changes, so that retrying is useless. */
export const isPermanentFailure = (error: unknown): boolean =>
  Object.hasOwn(permanentFailures, databaseErrorCode(error) ?? '')

/** Returns the message for an unavailable database, which may be sent to a client. */
export const unavailableMessage = (error: unknown): string => `The database cannot be used (${describeFailure(error)}).`

/**
 * Returns the message of an error. The message of a database error is replaced by a description, since the messages of
 * Drizzle contain SQL with values, which may be secrets.
 */
export const safeMessageOf = (error: unknown): string =>
  error instanceof Error && error.cause === undefined && databaseErrorCode(error) === undefined
    ? error.message
    : unavailableMessage(error)

/** Converts the error of a transaction that was rolled back to one that `Store.commit` throws. */
export function toCommitError (error: unknown): StorageError | InvalidChangeError {
  if (error instanceof StorageError || error instanceof InvalidChangeError) return error
  const code = databaseErrorCode(error)
  if (code === '23505') return new InvalidChangeError('An entry with that name already exists.')
  if (code === '54001') return new InvalidChangeError('This is nested too deeply to be stored.')
  if (code === '53100') return new StorageError('The database has no space left. Nothing was changed.', true)
  return new StorageError(`${unavailableMessage(error)} Nothing was changed.`, false, code === '58030')
}

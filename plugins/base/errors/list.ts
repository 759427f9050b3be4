import createError, { type FastifyError, type FastifyErrorConstructor } from '@fastify/error'
import { StorageError } from '../../../db/store.ts'
import { quoteName } from '../../../schemas/unknown-members.ts'

/**
 * Derives an error class whose instances keep the constructor's argument as a member, for a response header:
 * `retryAfter`, the seconds until the request may be repeated, or `scope`, the scope that the request needs (RFC 6750,
 * section 3).
 */
function withArgument<Detail extends number | string> (
  member: 'retryAfter' | 'scope', Base: FastifyErrorConstructor<{ code: string, statusCode: number }, [Detail]>
): new (detail: Detail) => FastifyError {
  return class extends Base {
    constructor (detail: Detail) {
      super(detail)
      Object.assign(this, { [member]: detail })
    }
  }
}

class QuotaUsedUp extends createError('TH_QUOTA_USED_UP', '%s', 429) {
  readonly retryAfter: number | undefined

  /** @param retryAfter the seconds until the quota is available again */
  constructor (message: string, retryAfter?: number) {
    super(message)
    this.retryAfter = retryAfter
  }
}

/** All HTTP errors of the gateway. `docs/errors.md` lists them; a test compares the two. */
export const errors = {
  TooManyFailures: withArgument(
    'retryAfter', createError('TH_TOO_MANY_FAILURES', 'Too many failed logins; try again in %s s', 429)
  ),
  TooManyRequests: withArgument(
    'retryAfter', createError('TH_TOO_MANY_REQUESTS', 'Too many requests of this kind; try again in %s s', 429)
  ),
  LimitReached: createError('TH_LIMIT_REACHED', '%s', 503),
  ShareUsed: createError('TH_SHARE_USED', '%s', 429),
  QuotaUsedUp,
  Refused: createError('TH_REFUSED', '%s', 403),
  WeakPassword: createError('TH_WEAK_PASSWORD', '%s', 400),
  Unauthorized: createError('TH_UNAUTHORIZED', '%s', 401),
  TokenTwice: createError('TH_TOKEN_TWICE', 'The request sends a token in two ways; send it in the Authorization ' +
    'header only', 400),
  ForeignOrigin: createError(
    'TH_FOREIGN_ORIGIN',
    'Requests from this Origin are not allowed; add it to ALLOWED_ORIGINS if they should be',
    403
  ),
  UntrustedOrigin: createError(
    'TH_UNTRUSTED_ORIGIN',
    'This Origin may not use login cookies; add it to SOCIAL_AUTH_TRUSTED_ORIGINS if it should',
    403
  ),
  ForeignHost: createError('TH_FOREIGN_HOST', 'Requests to this Host are not served; add it to ALLOWED_HOSTS if they ' +
    'should be', 403),
  CrossSite: createError('TH_CROSS_SITE', 'Tools do not run for pages of other sites, or for requests that browsers ' +
    'prefetch', 403),
  RouteDisabled: createError('TH_ROUTE_DISABLED', 'The global MCP route is disabled (routing.enableGlobalRoute)', 403),
  InsufficientScope: withArgument(
    'scope', createError('TH_INSUFFICIENT_SCOPE', 'The access token lacks the scope %s (insufficient_scope)', 403)
  ),
  OutOfScope: createError('TH_OUT_OF_SCOPE', 'This bearer key is not allowed to use this route', 403),
  WrongUser: createError('TH_WRONG_USER', 'This credential is not for the routes of this user', 403),
  ReadOnly: createError('TH_READ_ONLY', 'This gateway is read-only (READONLY): nothing can be changed', 403),
  UnknownRoute: createError('TH_UNKNOWN_ROUTE', 'There is no such group or server: %s', 404),
  NotReady: createError('TH_NOT_READY', 'Not ready: %s', 503),
  NotFound: createError('TH_NOT_FOUND', 'There is nothing at this path', 404),
  MethodNotAllowed: createError('TH_METHOD_NOT_ALLOWED', 'This address accepts only %s', 405),
  NotAcceptable: createError('TH_NOT_ACCEPTABLE', 'Not acceptable: the client must accept %s', 406),
  TooManyStreams: createError('TH_TOO_MANY_STREAMS', 'This session already has %s open streams', 409),
  MalformedRequest: createError('TH_MALFORMED_REQUEST', 'This is not a valid HTTP request', 400),
  TwoHosts: createError('TH_TWO_HOSTS', 'The request names more than one host: send one Host header, that of the ' +
    'request line', 400),
  TinyChunks: createError('TH_TINY_CHUNKS', 'The body has more than %s chunks of less than %s bytes on average', 400),
  TooSlow: createError('TH_TOO_SLOW', 'The request took too long to arrive', 408),
  HeadersTooLarge: createError('TH_HEADERS_TOO_LARGE', 'The path and headers are larger than %s bytes together', 431),
  AddressTooLong: createError('TH_ADDRESS_TOO_LONG', 'The address is longer than %s bytes: %s', 414),
  TooLarge: createError('TH_TOO_LARGE', 'The body is larger than %s bytes (routing.jsonBodyLimit)', 413),
  UnsupportedMediaType: createError(
    'TH_UNSUPPORTED_MEDIA_TYPE',
    'The body must be application/json in UTF-8, without a content encoding',
    415
  ),
  InvalidBundle: createError('TH_INVALID_BUNDLE', 'The bundle cannot be accepted: %s', 400),
  BundleTooLarge: createError('TH_BUNDLE_TOO_LARGE', 'The bundle is larger than %s bytes', 413),
  MultipartExpected: createError(
    'TH_MULTIPART_EXPECTED',
    'The body must be multipart/form-data, with the file in its field %s',
    415
  ),
  InvalidJson: createError('TH_INVALID_JSON', 'The body is not valid JSON%s', 400),
  InvalidInput: createError('TH_INVALID_INPUT', '%s', 400),
  InvalidChange: createError('TH_INVALID_CHANGE', '%s', 400),
  Forbidden: createError('TH_FORBIDDEN', '%s', 403),
  NotRecorded: createError('TH_NOT_RECORDED', 'Calls are not recorded: %s', 404),
  NoSuch: createError('TH_NO_SUCH', 'There is no such %s', 404),
  UpstreamFailed: createError('TH_UPSTREAM_FAILED', '%s', 502),
  UpstreamSlow: createError('TH_UPSTREAM_SLOW', '%s', 504),
  Duplicate: createError('TH_DUPLICATE', '%s', 409),
  EditedOnDisk: createError('TH_EDITED_ON_DISK', 'The settings file was edited in the meantime: %s', 409),
  ChangedMeanwhile: createError(
    'TH_CHANGED_MEANWHILE',
    'It was changed in the meantime, and nothing was saved: read it again, then repeat the change',
    412
  ),
  SecretsLocked: createError('TH_SECRETS_LOCKED', 'These secrets cannot be decrypted, so they cannot be ' +
    'exported: %s', 409),
  StorageAway: createError('TH_STORAGE_AWAY', 'The settings cannot be written now: %s', 503),
  DataAway: createError('TH_DATA_AWAY', 'The storage cannot be used now; try again later', 503),
  DiskFailing: createError('TH_DISK_FAILING', 'The disk reported an error: %s', 507),
  StorageFull: createError('TH_STORAGE_FULL', 'The disk is full: %s', 507),
  RecordsAway: createError('TH_RECORDS_AWAY', 'The records cannot be read now: %s', 503),
  InvalidUtf8: createError('TH_INVALID_UTF8', 'The body is not valid UTF-8', 400),
  SessionRequired: createError('TH_SESSION_REQUIRED', 'Bad request: the Mcp-Session-Id header is missing; begin with ' +
    'initialize', 400),
  SessionIdRequired: createError(
    'TH_SESSION_ID_REQUIRED',
    'Bad request: the query parameter sessionId is missing; open a stream with GET /sse first',
    400
  ),
  SessionUnknown: createError('TH_SESSION_UNKNOWN', 'Session not found; begin again with initialize', 404),
  UnsupportedVersion: createError(
    'TH_UNSUPPORTED_VERSION',
    'Bad request: MCP protocol version %s is not supported (supported versions: %s)',
    400
  ),
  OAuthOff: createError('TH_OAUTH_OFF', 'The authorization server of this gateway is off; an admin ' +
    'can turn it on', 404),
  SocialLoginOff: createError('TH_SOCIAL_LOGIN_OFF', 'Social login is off: %s', 404),
  LoginExpired: createError('TH_LOGIN_EXPIRED', 'This login was started in another browser or too long ago, or ' +
    'another login was started in this browser since: start it again', 400),
  Draining: createError('TH_DRAINING', 'The gateway is shutting down', 503)
} as const

/**
 * Creates the error for a member of a request that matches its schema, but breaks another rule.
 * @param path member names separated by dots
 * @param message the rest of a sentence whose subject is the path, such as `must be …`
 */
export const invalidMemberError = (path: string, message: string): FastifyError =>
  Object.assign(new errors.InvalidInput(`${path} ${message}`), { errors: [{ path, message }] })

/**
 * Creates the error for an entry that does not exist, or that the caller may not see.
 * @param what the kind of the entry, such as `server`
 * @param name the name that the caller sent
 */
export const noSuchError = (what: string, name: string): FastifyError =>
  new errors.NoSuch(`${what}: ${quoteName(name)}`)

/** Converts a storage error to an HTTP error. @param away the error to use if the storage cannot be reached */
export function toStorageHttpError (
  { isDiskFailing: isFailing, isFull }: StorageError, away: FastifyError
): FastifyError {
  const unchanged = 'the settings were not changed'
  if (isFailing) return new errors.DiskFailing(unchanged)
  return isFull ? new errors.StorageFull(unchanged) : away
}

/** Awaits a query of recorded calls or audit entries. @throws RecordsAway for a StorageError */
export async function awaitActivityOrAuditQuery<Result> (answer: Promise<Result>): Promise<Result> {
  try {
    return await answer
  } catch (error) {
    throw error instanceof StorageError ? new errors.RecordsAway(error.message) : error
  }
}

/** OAuth error codes (RFC 6749, section 5.2; RFC 7591, 3.2.2; RFC 6750, 3.1; RFC 8707, 2). */
type OAuthCode =
  | 'invalid_request'
  | 'invalid_client_metadata'
  | 'invalid_redirect_uri'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'access_denied'
  | 'invalid_target'

/** An OAuth error, sent as `{error, error_description}`. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthCode
  readonly statusCode: number

  constructor (code: OAuthCode, description: string, statusCode = 400) {
    super(description)
    this.code = code
    this.statusCode = statusCode
  }
}

import createError from '@fastify/error'

/** Every HTTP error the gateway makes itself. `docs/errors.md` lists them; a test holds the two together. */
export const errors = {
  Unauthorized: createError('TH_UNAUTHORIZED', '%s', 401),
  ForeignOrigin: createError('TH_FOREIGN_ORIGIN', 'Requests from this Origin are not allowed; add it to ALLOWED_ORIGINS if they should be', 403),
  ForeignHost: createError('TH_FOREIGN_HOST', 'Requests to this Host are not served; add it to ALLOWED_HOSTS if they should be', 403),
  RouteDisabled: createError('TH_ROUTE_DISABLED', 'The global MCP route is disabled (routing.enableGlobalRoute)', 403),
  OutOfScope: createError('TH_OUT_OF_SCOPE', 'This bearer key is not allowed to use this route', 403),
  UnknownRoute: createError('TH_UNKNOWN_ROUTE', 'There is no such group or server', 404),
  NotReady: createError('TH_NOT_READY', 'Not ready: %s', 503),
  NotFound: createError('TH_NOT_FOUND', 'There is nothing at this path', 404),
  MethodNotAllowed: createError('TH_METHOD_NOT_ALLOWED', 'This endpoint takes GET, POST and DELETE', 405),
  NotAcceptable: createError('TH_NOT_ACCEPTABLE', 'Not acceptable: the client must accept %s', 406),
  TooManyStreams: createError('TH_TOO_MANY_STREAMS', 'This session holds %s streams open already', 409),
  TooLarge: createError('TH_TOO_LARGE', 'The body is larger than %s bytes (routing.jsonBodyLimit)', 413),
  UnsupportedMediaType: createError('TH_UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json, without a content encoding', 415),
  InvalidJson: createError('TH_INVALID_JSON', 'The body is not valid JSON%s', 400),
  InvalidInput: createError('TH_INVALID_INPUT', '%s', 400),
  InvalidChange: createError('TH_INVALID_CHANGE', '%s', 400),
  Forbidden: createError('TH_FORBIDDEN', '%s', 403),
  NoSuch: createError('TH_NO_SUCH', 'There is no such %s', 404),
  UpstreamFailed: createError('TH_UPSTREAM_FAILED', '%s', 502),
  UpstreamSlow: createError('TH_UPSTREAM_SLOW', '%s', 504),
  EditedOnDisk: createError('TH_EDITED_ON_DISK', 'The settings were edited on disk meanwhile: %s', 409),
  StorageAway: createError('TH_STORAGE_AWAY', 'The settings cannot be written now: %s', 503),
  StorageFull: createError('TH_STORAGE_FULL', 'The disk is full: the settings were not changed', 507),
  InvalidUtf8: createError('TH_INVALID_UTF8', 'The body is not valid UTF-8', 400),
  SessionRequired: createError('TH_SESSION_REQUIRED', 'Bad request: the Mcp-Session-Id header is missing; begin with initialize', 400),
  SessionUnknown: createError('TH_SESSION_UNKNOWN', 'Session not found; begin again with initialize', 404),
  UnsupportedVersion: createError('TH_UNSUPPORTED_VERSION', 'Bad request: MCP protocol version %s is not supported (supported versions: %s)', 400),
  Draining: createError('TH_DRAINING', 'The gateway is shutting down', 503),
  Busy: createError('TH_BUSY', 'The gateway has as many sessions as it can hold; try again later', 503)
} as const

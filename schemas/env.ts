import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

// `expected` describes the accepted values in words, for error messages.

/** A duration: `500ms`, `5s`, `10m`, `24h`, or a plain number of milliseconds. */
const Duration = (value: string, description: string) =>
  Type.String({
    default: value,
    isDuration: true,
    pattern: '^[0-9]+(ms|s|m|h|d)?$',
    expected: 'a duration, as "500ms", "30s", "10m", "24h"',
    description
  })

/** A positive duration, for timeouts: with zero, every operation would time out. */
const PositiveDuration = (value: string, description: string) =>
  Type.String({
    default: value,
    isDuration: true,
    pattern: '^0*[1-9][0-9]*(ms|s|m|h|d)?$',
    expected: 'a duration above zero, as "500ms", "30s", "10m", "24h"',
    description
  })

/** A variable that contains a secret. It can also be read from a file. */
const Secret = (description: string) => Type.Optional(Type.String({ secret: true, description }))

const Text = (description: string) => Type.Optional(Type.String({ description }))
/** A boolean without a default, so that an unset variable is not the same as `false`. */
const Switch = (description: string) => Type.Optional(Type.Boolean({ description }))

/** All environment variables of Tool-Hub. The table in docs/configuration.md is generated from this schema. */
export const Env = Type.Object({
  PORT: Type.Integer({
    default: 3000,
    minimum: 0,
    maximum: 65535,
    expected: 'a whole number from 0 to 65535',
    description: 'Port to listen on'
  }),
  HOST: Type.String({ default: '127.0.0.1', description: 'Address to listen on; `0.0.0.0` in a container' }),
  BASE_PATH: Type.String({
    default: '',
    pattern: '^(/(?!\\.{1,2}(/|$))[A-Za-z0-9._~-]+)*/?$',
    expected: 'a path as "/hub", of segments of A-Za-z0-9._~- that are not "." or ".."',
    description: 'Prefix of every path, for example `/hub`'
  }),
  BASE_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      expected: 'an address as "https://hub.example.com"',
      description:
        'Public address, for printed configurations, callbacks and metadata. It may end with `BASE_PATH`, which is ' +
        'not added twice. Default: the setting `install.baseUrl`, otherwise the address to listen on'
    })
  ),
  SETTINGS_PATH: Type.String({ default: 'mcp_settings.json', description: 'The settings file' }),
  DATA_DIR: Type.Optional(
    Type.String({
      description: 'Folder of the catalogue cache, the bundles and the generated keys. Default: `.tool-hub` next to ' +
        'the settings file'
    })
  ),
  DB_URL: Type.Optional(
    Type.String({
      secret: true,
      description:
        'A database instead of the settings file: `postgres://<user>:<password>@<host>:<port>/<database>`, or ' +
        '`pglite://<folder>` for an embedded PostgreSQL, which needs no server. An empty database is initialized ' +
        'with the content of the settings file'
    })
  ),
  DB_STARTUP_TIMEOUT: Duration('60s', 'How long to wait for the database at startup'),
  ENCRYPTION_KEY: Type.Optional(
    Type.String({
      secret: true,
      description:
        'Encrypts secrets in the database: 32 bytes in hex (`openssl rand -hex 32`) or base64, or a passphrase of 16 ' +
        'characters or more. Of several, comma-separated, the first encrypts and all decrypt. Unset: ' +
        '`encryption.key` in `DATA_DIR`, generated once. All replicas need the same value'
    })
  ),
  ALLOWED_ORIGINS: Type.String({
    default: '',
    description: 'Origins, comma-separated, that may call the MCP endpoints from a browser, besides the same origin ' +
      'and that of `BASE_URL`'
  }),
  ALLOWED_HOSTS: Type.String({
    default: '',
    description:
      'Accepted values of the header `Host`, comma-separated. They are checked if this is set, or if the gateway ' +
      'listens on loopback; never for `/health` and paths below it'
  }),
  MEMORY_BUDGET: Type.Integer({
    default: 256 * 1024 * 1024,
    minimum: 64 * 1024 * 1024,
    expected: 'a whole number of bytes, at least 67108864 (64 MiB)',
    description:
      'Max memory of results, unread replies and request bodies in flight, in bytes. Above it, the slowest reader is ' +
      'disconnected, and large requests are refused with 429 or 503'
  }),
  TRUST_PROXY: Type.String({
    default: '',
    description:
      'Proxies whose `X-Forwarded-*` headers are trusted: `true` for all, a number of proxies, or their addresses ' +
      '(comma-separated)'
  }),
  READONLY: Type.Boolean({
    default: false,
    description: 'Refuses all changes; logging in, MCP and running tools still work'
  }),
  PUBLIC_TOOLS: StringEnum(['public', 'all', 'off'], {
    default: 'public',
    description:
      'Servers that callers without credentials can use; over MCP, only if bearer authentication is off. `public`: ' +
      'those whose visibility is public; `all`: all; `off`: as `public`, but the open tool routes are closed'
  }),
  JWT_SECRET: Secret(
    'Signs login tokens, at least 32 random bytes. Unset: `login.key` in `DATA_DIR`, generated once. All replicas ' +
    'need the same value'
  ),
  JWT_EXPIRES_IN: Type.String({
    default: '24h',
    pattern: '^0*([1-9][0-9]{3,}(ms)?|[1-9][0-9]*[smhd])$',
    expected: 'a duration of at least a second, as "30m", "24h"',
    description: 'How long a login lasts'
  }),
  ADMIN_PASSWORD: Secret(
    'Password of the user `admin`, who is created if there are no users. Unset: a random one, shown once: on the ' +
    'terminal, otherwise in the file `first-start.txt` in `DATA_DIR`, which the log mentions'
  ),
  ALLOW_REGISTRATION: Type.Boolean({
    default: false,
    description: 'Lets anybody create an account without admin rights with `POST /api/auth/register`; otherwise only ' +
      'admins can'
  }),
  ALLOW_USER_STDIO: Type.Boolean({
    default: false,
    description: 'Lets users without admin rights store servers that run commands'
  }),
  CHILD_USER: Type.Optional(
    Type.String({
      pattern: '^([A-Za-z_][A-Za-z0-9_.-]*\\$?|[0-9]+(:[0-9]+)?)$',
      expected: 'the name of a user, or its number, as "mcp", "1000", "1000:1000"',
      description:
        'The user that stdio servers run as, if the gateway is started by root: a name, `uid` or `uid:gid`. Their ' +
        'files and the `npx` cache then belong to that user, and they can read neither the gateway\'s environment ' +
        'nor its settings'
    })
  ),
  SOCIAL_AUTH_ENABLED: Switch(
    'Switches social login on or off (docs/social-login.md). It requires `DB_URL`. Default: on if the credentials of ' +
    'a provider are set'
  ),
  SOCIAL_AUTH_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      expected: 'an address as "https://hub.example.com"',
      description: 'Public address for the redirect URIs of social login, with or without `BASE_PATH`. Default: ' +
        '`BASE_URL`'
    })
  ),
  SOCIAL_AUTH_BASE_PATH: Type.Optional(
    Type.String({
      pattern: '^(/(?!\\.{1,2}(/|$))[A-Za-z0-9._~-]+)+/?$',
      expected: 'a path as "/api/auth/better"',
      description: 'Path of social login, below `BASE_PATH`. Default: `/api/auth/better`'
    })
  ),
  SOCIAL_AUTH_TRUSTED_ORIGINS: Type.Optional(
    Type.String({
      description:
        'Origins whose pages may use the cookie of a social login, besides the same origin: separated by commas or ' +
        'spaces, or a JSON array. Default: the origins of `SOCIAL_AUTH_URL` and `BASE_URL`'
    })
  ),
  SOCIAL_AUTH_CODEHOST_ENABLED: Switch('Login with GitHub. Default: on if its credentials are set'),
  CODEHOST_CLIENT_ID: Text('Client id for GitHub'),
  CODEHOST_CLIENT_SECRET: Secret('Client secret for GitHub'),
  SOCIAL_AUTH_IDP_ENABLED: Switch('Login with Google. Default: on if its credentials are set'),
  IDP_CLIENT_ID: Text('Client id for Google'),
  IDP_CLIENT_SECRET: Secret('Client secret for Google'),
  SOCIAL_AUTH_OIDC_ENABLED: Switch('Login with an OpenID provider. Default: on if its credentials and a discovery ' +
    'URL are set'),
  SOCIAL_AUTH_OIDC_PROVIDER_ID: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      expected: 'a name of letters, digits, "_" and "-"',
      description: 'Name of the OpenID provider in addresses and on the login page. Default: `oidc`'
    })
  ),
  SOCIAL_AUTH_OIDC_DISCOVERY_URL: Text('Address of the `/.well-known/openid-configuration` of the OpenID provider'),
  OIDC_DISCOVERY_URL: Text('Former name of `SOCIAL_AUTH_OIDC_DISCOVERY_URL`'),
  SOCIAL_AUTH_OIDC_SCOPES: Text('Scopes to request from the OpenID provider, separated by spaces or commas. Default: ' +
    '`openid profile email`'),
  SOCIAL_AUTH_OIDC_PKCE: Switch('Use PKCE with the OpenID provider. Default: on'),
  SOCIAL_AUTH_OIDC_PROMPT: Text('The parameter `prompt` of requests to the OpenID provider, for example `login` or ' +
    '`select_account`'),
  SOCIAL_AUTH_OIDC_GROUPS_CLAIM: Text('Claim that contains the groups of a user, for example `groups`; `claims` of ' +
    'teams refer to these groups'),
  OIDC_CLIENT_ID: Text('Client id for the OpenID provider'),
  OIDC_CLIENT_SECRET: Secret('Client secret for the OpenID provider'),
  CONSOLE: StringEnum(['on', 'off'], {
    default: 'on', description: 'Whether the console is served at `/console`; `off`: 404'
  }),
  METRICS: StringEnum(['admin', 'public', 'off'], {
    default: 'admin',
    description:
      'Who may read `/metrics`. `admin`: callers with an admin\'s credential in `Authorization`, or with ' +
      '`METRICS_TOKEN`; `public`: every caller, with the names of those servers only that the caller may see; `off`: ' +
      'nobody (404)'
  }),
  METRICS_TOKEN: Secret(
    'A bearer token for Prometheus that gives access to `/metrics` only: at least 32 random bytes'
  ),
  OUTBOUND_ALLOW: Type.String({
    default: '',
    description:
      'Exceptions to the rules for outbound connections: servers stored by users without admin rights may connect to ' +
      'public addresses only, and no server may connect to link-local or cloud metadata addresses. Comma-separated ' +
      'addresses and ranges (`10.0.0.0/8`), which are then allowed, and hosts (`mcp.lan`, `*.lan`), which may then ' +
      'resolve to private and loopback addresses'
  }),
  REGISTRY_URL: Type.String({
    default: 'https://registry.modelcontextprotocol.io',
    pattern: '^https?://[^\\s?#]+$',
    expected: 'an http or https address, as "https://registry.example.com"',
    description: 'The MCP registry that `/api/registry` reads: the address before `/v0.1/servers`'
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.Optional(
    Type.String({
      description:
        'Collector that receives the traces of calls, for example `http://127.0.0.1:4318`. Other OpenTelemetry ' +
        'variables are supported, too: see `docs/tracing.md`'
    })
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: Type.Optional(Type.String({
    description: 'Full address for traces, including the path; overrides `OTEL_EXPORTER_OTLP_ENDPOINT`'
  })),
  OTEL_EXPORTER_OTLP_PROTOCOL: StringEnum(['http/protobuf', 'http/json'], {
    default: 'http/protobuf',
    description: 'Encoding in which traces are sent'
  }),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: Type.Optional(
    StringEnum(['http/protobuf', 'http/json'], {
      description: 'Encoding for traces; overrides `OTEL_EXPORTER_OTLP_PROTOCOL`'
    })
  ),
  OTEL_TRACES_EXPORTER: Type.Optional(
    StringEnum(['otlp', 'console', 'none'], {
      description: 'Where traces are sent. Default: `otlp` if an endpoint is set, otherwise nowhere'
    })
  ),
  OTEL_SDK_DISABLED: Type.Boolean({
    default: false,
    description: 'Switches tracing off, regardless of the other variables'
  }),
  EMBEDDING_DIMENSIONS_API_PASSTHROUGH: Switch(
    'Sends `smartRouting.embeddingDimensions` to every embeddings model, even to one that may not accept it. ' +
    'Default: the setting `smartRouting.embeddingDimensionsApiPassthrough`'
  ),
  ACTIVITY_RETENTION: Duration('30d', 'How long recorded calls are kept in the database. `0`: calls are not recorded'),
  ACTIVITY_PAYLOADS: Type.Boolean({
    default: true,
    description: 'Records the inputs and outputs of calls, up to 100 KiB of each'
  }),
  TOOL_HUB_URL: Type.Optional(
    Type.String({
      pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$',
      expected: 'an address as "https://hub.example.com"',
      description: 'For the command line: address of the gateway. Unset: the gateway that runs on this machine with ' +
        'these settings'
    })
  ),
  TOOL_HUB_KEY: Secret('For the command line: a system key with `accessType: "all"`, for `TOOL_HUB_URL`'),
  LOG_LEVEL: StringEnum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    description: 'The lowest level of logged messages'
  }),
  INIT_TIMEOUT: PositiveDuration(
    '60s',
    'How long an upstream may take to answer `initialize`. If it has not answered after 10 s, this is logged with ' +
    'its last output'
  ),
  REQUEST_TIMEOUT: PositiveDuration(
    '60s',
    'How long an upstream may be silent during a call. The server\'s `options.timeout` overrides it'
  ),
  DRAIN_TIMEOUT: Duration('5s', 'How long calls in flight may take after SIGTERM, at most `9s`: the gateway exits ' +
    'within 10 s')
})
export type Env = Static<typeof Env>

/** The names of the variables that contain secrets. Each can also be read from the file in `<NAME>_FILE`. */
export const secretVariableNames: readonly string[] =
  Object.entries<TSchema>(Env.properties).filter(([, schema]) => schema.secret === true).map(([name]) => name)

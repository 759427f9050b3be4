import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { problemOf } from './problem.ts'
import { StringEnum } from './string-enum.ts'

// `expected` says in words what a pattern says in signs.

/** A duration: `500ms`, `5s`, `10m`, `24h`, or a bare number of milliseconds. */
const Duration = (value: string, description: string) =>
  Type.String({ default: value, pattern: '^[0-9]+(ms|s|m|h|d)?$', expected: 'a duration, as "500ms", "30s", "10m", "24h"', description })

/** Every environment variable of Tool-Hub, stated once; the README's table comes from it. */
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
    description: 'Put before every path, for example `/hub`'
  }),
  SETTINGS_PATH: Type.String({ default: 'mcp_settings.json', description: 'The settings file' }),
  DATA_DIR: Type.Optional(
    Type.String({
      description: 'What is not configuration: the catalogue cache, the encryption key. Default: `.tool-hub` beside the settings file'
    })
  ),
  DB_URL: Type.Optional(
    Type.String({
      description:
        'A database instead of the settings file: `postgres://<user>:<password>@<host>:<port>/<database>`, or `pglite://<folder>` for an embedded PostgreSQL, which needs no server. An empty one begins with what the settings file holds'
    })
  ),
  DB_STARTUP_TIMEOUT: Duration('60s', 'How long to wait for the database at the start'),
  ENCRYPTION_KEY: Type.Optional(
    Type.String({
      description:
        'Seals secrets in the database: 32 bytes in hex (`openssl rand -hex 32`) or base64, or a passphrase of 16 characters or more; several behind commas, of which the first seals and all open. Unset: `encryption.key` in `DATA_DIR`, made once. Several replicas need it set, and alike'
    })
  ),
  ALLOWED_ORIGINS: Type.String({
    default: '',
    description: 'Origins that may call the MCP endpoints from a browser, beside the same origin and `install.baseUrl`; comma-separated'
  }),
  ALLOWED_HOSTS: Type.String({
    default: '',
    description:
      'Values of `Host` that are served; comma-separated. Checked when set, and when listening on loopback; `/health` and what is below it answers to any'
  }),
  TRUST_PROXY: Type.String({
    default: '',
    description:
      "Whose `X-Forwarded-*` headers are believed: `true` for everybody's, a number of proxies, or their addresses (comma-separated)"
  }),
  READONLY: Type.Boolean({ default: false, description: 'Nothing can be changed; logging in, MCP and running tools go on' }),
  PUBLIC_TOOLS: StringEnum(['default', 'public', 'all', 'off'], {
    default: 'default',
    description:
      'What callers without credentials reach, on MCP where bearer auth is off: `default` public servers and those of admins that never had a visibility, `public` public ones only, `all` everything; `off` is `default`, and closes the open tool routes'
  }),
  JWT_SECRET: Type.Optional(
    Type.String({ description: 'Signs login tokens, at least 32 random bytes; unset: logins end with the process' })
  ),
  JWT_EXPIRES_IN: Type.String({
    default: '24h',
    pattern: '^0*([1-9][0-9]{3,}(ms)?|[1-9][0-9]*[smhd])$',
    expected: 'a duration of at least a second, as "30m", "24h"',
    description: 'How long a login lasts'
  }),
  ADMIN_PASSWORD: Type.Optional(
    Type.String({ description: 'Password of the user `admin`, made when there are no users; unset: a random one, printed once' })
  ),
  ALLOW_REGISTRATION: Type.Boolean({
    default: false,
    description: "Lets anybody make an account, never an admin's, with `POST /api/auth/register`; otherwise only admins do"
  }),
  ALLOW_USER_STDIO: Type.Boolean({ default: false, description: 'Lets users who are no admins store servers that run commands' }),
  OUTBOUND_ALLOW: Type.String({
    default: '',
    description:
      'What may be reached beyond the rules: servers stored by users who are no admins reach public addresses only, and nobody reaches link-local and cloud metadata ones. Comma-separated addresses and ranges (`10.0.0.0/8`), which open what they name, and hosts (`mcp.lan`, `*.lan`), which open private and loopback addresses behind those names'
  }),
  LOG_LEVEL: StringEnum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], { default: 'info', description: 'What is logged' }),
  INIT_TIMEOUT: Duration('60s', 'How long an upstream may take to answer `initialize`'),
  REQUEST_TIMEOUT: Duration('60s', "How long an upstream may be silent on a call, where the server's `options.timeout` says nothing else"),
  DRAIN_TIMEOUT: Duration('5s', 'How long calls in flight may still take after SIGTERM')
})
export type Env = Static<typeof Env>

/** The environment as its schema says. @throws Error naming the variable and what it must be */
export function readEnv (environment: Readonly<Record<string, string | undefined>>): Env {
  const given = Object.fromEntries(Object.entries<TSchema>(Env.properties).flatMap(([name, schema]) => {
    const text = environment[name]
    return text === undefined || text === '' ? [] : [[name, valueOf(schema, text)]]
  }))
  const env: unknown = Value.Default(Env, given)
  const problem = problemOf(Env, env)
  if (!problem) return env as Env
  const { expected }: TSchema = Env.properties[problem.path as keyof Env]
  throw new Error(
    `The environment variable ${problem.path} cannot be ${JSON.stringify(environment[problem.path])}: ${typeof expected === 'string' ? `expected ${expected}` : problem.message}.`
  )
}

/** What a variable's text stands for. A number is written in digits: `1e3` is none, nor `0x10`. */
const valueOf = (schema: TSchema, text: string): unknown =>
  schema.type === 'integer' ? (/^[0-9]+$/.test(text) ? Number(text) : text) : schema.type === 'boolean' ? Value.Convert(schema, text) : text

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration of the environment in ms. */
export function milliseconds (text: string): number {
  const [, number = '0', unit = 'ms'] = /^([0-9]+)(ms|s|m|h|d)?$/.exec(text) ?? []
  // No timer runs longer (24.8 days), and none for no time.
  return Math.min(Math.max(Number(number) * (units[unit] ?? 1), 1), 2 ** 31 - 1)
}

import fp from 'fastify-plugin'
import type { Env } from '../../../schemas/env.ts'
import { socialVariableNames } from '../../../schemas/social.ts'
import { resolveListenHost } from './listening.ts'

/** The environment variables that plugins may read. All others are only for `server.ts` or the storage. */
const sharedNames = [
  'ACTIVITY_PAYLOADS',
  'ACTIVITY_RETENTION',
  'HOST',
  'BASE_PATH',
  'BASE_URL',
  'CONSOLE',
  'EMBEDDING_DIMENSIONS_API_PASSTHROUGH',
  'ALLOWED_HOSTS',
  'ALLOWED_ORIGINS',
  'PUBLIC_TOOLS',
  'JWT_SECRET',
  'JWT_EXPIRES_IN',
  'METRICS',
  'METRICS_TOKEN',
  'ALLOW_REGISTRATION',
  'ALLOW_USER_STDIO',
  'MEMORY_BUDGET',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_PROTOCOL',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
  'OTEL_SDK_DISABLED',
  'OTEL_TRACES_EXPORTER',
  'INIT_TIMEOUT',
  'OUTBOUND_ALLOW',
  'READONLY',
  'REGISTRY_URL',
  'REQUEST_TIMEOUT',
  'TRUST_PROXY',
  ...socialVariableNames
] as const

export type SharedEnv = Pick<Env, typeof sharedNames[number]>

/** The options that several plugins need. They never change while the process runs. */
export interface Config {
  /** The version of Tool-Hub, from package.json. */
  readonly version: string
  /** The prefix of every route: BASE_PATH without a trailing slash; may be empty. */
  readonly basePath: string
  /** The address to listen on: HOST, or the address that it resolves to. */
  readonly listenAddress: string
  readonly env: Readonly<SharedEnv>
}

declare module 'fastify' {
  interface FastifyInstance { config: Config }
}

interface ConfigOptions {
  version: string
  /** Only the members of `SharedEnv` are used. */
  env: SharedEnv
}

/** Converts BASE_PATH to the prefix of every route, which has no trailing slash. */
export const basePathOf = ({ BASE_PATH: path }: Pick<Env, 'BASE_PATH'>): string => path.replace(/\/$/, '')

/** Decorates the app with `config`, which is frozen. */
export default fp<ConfigOptions>(async (app, { version, env }) => {
  const taken = Object.fromEntries(sharedNames.map((name) => [name, env[name]])) as SharedEnv
  const listenAddress = await resolveListenHost(taken.HOST)
  const basePath = basePathOf(env)
  app.decorate('config', Object.freeze({ version, basePath, listenAddress, env: Object.freeze(taken) }))
}, { name: 'config' })

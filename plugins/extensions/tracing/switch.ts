import type { Env } from '../../../schemas/env.ts'

type TracingEnv = Pick<
  Env,
  | 'OTEL_SDK_DISABLED'
  | 'OTEL_TRACES_EXPORTER'
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_PROTOCOL'
  | 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
>

/** Where spans go to; undefined: nowhere, which is so until a variable asks for them. */
export function exporterOf (env: TracingEnv): 'http/protobuf' | 'http/json' | 'console' | undefined {
  const { OTEL_TRACES_EXPORTER: exporter } = env
  const isAsked = exporter !== undefined ||
    env.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined
  if (env.OTEL_SDK_DISABLED || exporter === 'none' || !isAsked) return undefined
  return exporter === 'console' ? 'console' : env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL
}

/** Why the collector that the variables name cannot be one; undefined: it can, or none is named. The address may hold a password. */
export function collectorProblem (env: TracingEnv): string | undefined {
  const names = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const
  const name = names.find((each) => env[each] !== undefined)
  const address = name === undefined ? undefined : env[name]
  if (address === undefined || (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol))) return undefined
  return `${name} is not an http or https address, such as http://127.0.0.1:4318`
}

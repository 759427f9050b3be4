import type { Env } from '../../schemas/env.ts'

export type TracingEnv = Pick<
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

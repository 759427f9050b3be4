import fp from 'fastify-plugin'
import type { Env } from '../../../schemas/env.ts'

/** Traces calls with OpenTelemetry if its environment variables are set. Otherwise, OpenTelemetry is not loaded. */
export default fp(async (app) => {
  const { env, version } = app.config
  const exporter = exporterOf(env)
  if (exporter === undefined) return
  const problem = exporter === 'console' ? undefined : collectorProblem(env)
  if (problem !== undefined) {
    // With an invalid address, the SDK would send to its default address.
    app.log.warn(`calls are not traced: ${problem}`)
    return
  }
  const { CallTracer } = await import('./tracer.ts')
  const tracer = new CallTracer({
    exporter,
    version,
    mask: (text) => app.credentials.mask(text),
    reportOutage: (level, sentence) => { app.log[level](sentence) }
  })
  app.gateway.addHook('onCall', (call) => { call.trace = tracer.beginSpan(call) })
  app.gateway.addHook('onDone', (call) => { tracer.endSpan(call) })
  app.addHook('onClose', async () => { await tracer.close() })
}, { name: 'tracing', dependencies: ['base', 'gateway'] })

type TracingEnv = Pick<
  Env,
  | 'OTEL_SDK_DISABLED'
  | 'OTEL_TRACES_EXPORTER'
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_PROTOCOL'
  | 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
>

/** Returns the exporter of spans that the environment variables select; undefined if they do not enable tracing. */
export function exporterOf (env: TracingEnv): 'http/protobuf' | 'http/json' | 'console' | undefined {
  const { OTEL_TRACES_EXPORTER: exporter } = env
  const isAsked = exporter !== undefined ||
    env.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined
  if (env.OTEL_SDK_DISABLED || exporter === 'none' || !isAsked) return undefined
  return exporter === 'console' ? 'console' : env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL
}

/**
 * Returns a clause about an invalid address of the collector; undefined if the address is valid or not set. The clause
 * does not contain the address, which may contain a password.
 */
export function collectorProblem (env: TracingEnv): string | undefined {
  const names = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const
  const name = names.find((each) => env[each] !== undefined)
  const address = name === undefined ? undefined : env[name]
  if (address === undefined || (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol))) return undefined
  return `${name} is not an http or https address, such as http://127.0.0.1:4318`
}

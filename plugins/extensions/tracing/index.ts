import fp from 'fastify-plugin'
import type { CallTracer, TracingDeps } from './tracer.ts'
import type { Env } from '../../../schemas/env.ts'

/** A function of its own: the compiler leaves the name of the source as it is where the import stands in an argument of `fp`. */
async function makeTracer (options: TracingDeps): Promise<CallTracer> {
  const { CallTracer } = await import('./tracer.ts')
  return new CallTracer(options)
}

/** Traces calls by OpenTelemetry, where its variables ask for that; else nothing is loaded, and no hook is registered. */
export default fp(async (app) => {
  const { env, version } = app.config
  const exporter = exporterOf(env)
  if (exporter === undefined) return
  const problem = exporter === 'console' ? undefined : collectorProblem(env)
  if (problem !== undefined) {
    // The SDK would send to a default address instead, which nobody has named.
    app.log.warn(`calls are not traced: ${problem}`)
    return
  }
  const tracer = await makeTracer({
    exporter,
    version,
    mask: (text) => app.credentials.mask(text),
    tell: (level, sentence) => { app.log[level](sentence) }
  })
  app.gateway.addHook('onCall', (call) => { tracer.begin(call) })
  app.gateway.addHook('onDone', (call) => { tracer.end(call) })
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

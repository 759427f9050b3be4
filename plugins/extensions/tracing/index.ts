import fp from 'fastify-plugin'
import { collectorProblem, exporterOf } from './switch.ts'
import type { CallTracer, TracingDeps } from './tracer.ts'

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

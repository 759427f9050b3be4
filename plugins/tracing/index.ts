import fp from 'fastify-plugin'
import { exporterOf } from './switch.ts'

/** Traces calls by OpenTelemetry, where its variables ask for that; else nothing is loaded, and no hook is registered. */
export default fp(async (app) => {
  const { env, version } = app.config
  const exporter = exporterOf(env)
  if (exporter === undefined) return
  const { CallTracer } = await import('./tracer.ts')
  const tracer = new CallTracer({ exporter, version, warn: (details, sentence) => { app.log.warn(details, sentence) } })
  app.gateway.addHook('onCall', (call) => { tracer.begin(call) })
  app.gateway.addHook('onDone', (call) => { tracer.end(call) })
  app.addHook('onClose', async () => { await tracer.close() })
}, { name: 'tracing', dependencies: ['config', 'gateway'] })

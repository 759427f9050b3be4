import fp from 'fastify-plugin'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { RpcError } from '../../protocol/errors.ts'
import type { CallContext } from '../gateway/hooks.ts'

declare module 'fastify' {
  interface FastifyInstance { metrics: Registry }
}

/** Servers that get labels of their own; the rest are counted together, so that names cannot grow the memory. */
const labelledServers = 200

/** `app.metrics`: what happens at the gateway, for Prometheus. A registration on the gateway's hooks: no caller knows of it. */
export default fp(async (app) => {
  const register = new Registry()
  collectDefaultMetrics({ register, prefix: 'toolhub_' })
  const calls = new Counter({ name: 'toolhub_calls_total', help: 'Requests sent on to upstream servers', labelNames: ['server', 'method', 'outcome'], registers: [register] })
  const seconds = new Histogram({ name: 'toolhub_call_seconds', help: 'Time from a request at the gateway to its answer', labelNames: ['server'], buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60], registers: [register] })
  const questions = new Counter({ name: 'toolhub_questions_total', help: 'Questions of upstream servers to clients', labelNames: ['server'], registers: [register] })
  const gauge = (name: string, help: string, read: () => number): Gauge => new Gauge({ name, help, registers: [register], collect () { this.set(read()) } })
  gauge('toolhub_sessions', 'MCP sessions', () => app.downstream.sessions.size)
  gauge('toolhub_links', 'Connections to upstream servers', () => app.upstreams.links)
  const states = new Gauge({
    name: 'toolhub_upstreams',
    help: 'Upstream servers by status',
    labelNames: ['status'],
    registers: [register],
    collect () { for (const [status, count] of Object.entries(app.upstreams.counts())) this.set({ status }, count) }
  })
  states.reset()

  const known = new Set<string>()
  const labelOf = (server: string): string => {
    if (!known.has(server) && known.size < labelledServers) known.add(server)
    return known.has(server) ? server : 'other'
  }
  const methods = new Set(['tools/call', 'prompts/get', 'resources/read', 'completion/complete'])
  const end = (context: CallContext, outcome: string): void => {
    const server = labelOf(context.server)
    const { method } = context.exchange
    calls.inc({ server, method: methods.has(method) ? method : 'other', outcome })
    seconds.observe({ server }, (performance.now() - context.started) / 1_000)
  }
  app.gateway.addHook('onResult', (context, result) => { end(context, 'ok'); return result })
  app.gateway.addHook('onError', (context, error) => { end(context, error instanceof RpcError ? 'error' : 'failure') })
  app.gateway.addHook('onQuestion', (server) => { questions.inc({ server: labelOf(server) }) })
  app.decorate('metrics', register)
}, { name: 'metrics', dependencies: ['gateway', 'downstream', 'upstream'] })

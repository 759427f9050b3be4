import fp from 'fastify-plugin'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { makeView, type Principal } from '../../settings/index.ts'
import { CallMetrics } from './call-metrics.ts'

declare module 'fastify' {
  interface FastifyInstance { metrics: Metrics }
}

interface Metrics {
  readonly contentType: string
  /** All metrics as text, without those of servers that the principal may not see. */
  read: (principal?: Principal) => Promise<string>
  /** Adds a counter. @param read returns its value */
  count: (name: string, help: string, read: () => number) => void
  /** Adds a gauge. @param read returns its value */
  gauge: (name: string, help: string, read: () => number) => void
}

/** Max number of servers in `toolhub_upstream_up`, in the order of the configuration. */
const shownServers = 2_000

/** `app.metrics`: the metrics of the gateway, for Prometheus. */
export default fp(async (app) => {
  const register = new Registry()
  collectDefaultMetrics({ register })
  const calls = new CallMetrics()
  calls.register(register)
  const questions = new Counter({
    name: 'toolhub_questions_total',
    help: 'Questions of upstream servers to clients',
    labelNames: ['server'],
    registers: [register]
  })
  const gauge = (name: string, help: string, read: () => number): Gauge =>
    new Gauge({
      name,
      help,
      registers: [register],
      collect () {
        this.set(read())
      }
    })
  const count = (name: string, help: string, read: () => number): void => {
    const counter =
      new Counter({ name, help, registers: [register], collect: () => { counter.reset(); counter.inc(read()) } })
  }
  gauge('toolhub_connections', 'Open connections of clients', () => app.connections.open)
  count('toolhub_connections_closed_total', 'Idle or new connections that were closed for want ' +
    'of room', () => app.connections.closed)
  gauge('toolhub_sessions', 'MCP sessions', () => app.downstream.sessions.size)
  gauge('toolhub_calls_in_flight', 'Requests of clients that wait for a server', () => app.gateway.inFlight)
  gauge('toolhub_links', 'Connections to upstream servers', () => app.upstreams.links)
  const states = new Gauge({
    name: 'toolhub_upstreams',
    help: 'Upstream servers by status',
    labelNames: ['status'],
    registers: [register],
    collect () { for (const [status, count] of Object.entries(app.upstreams.counts())) this.set({ status }, count) }
  })
  states.reset()
  const up = new Gauge({
    name: 'toolhub_upstream_up',
    help: 'Whether an upstream server can be called: 1, or 0',
    labelNames: ['server'],
    registers: [register],
    collect () {
      this.reset()
      let left = shownServers
      for (const [server, isAvailable] of app.upstreams.availability()) {
        if (left-- > 0) this.set({ server }, isAvailable ? 1 : 0)
      }
    }
  })
  up.reset()
  new Gauge(
    {
      name: 'toolhub_build_info',
      help: 'The version that runs: always 1',
      labelNames: ['version', 'node'],
      registers: [register]
    }
  )
    .set({ version: app.config.version, node: process.version }, 1)

  const refused = new Counter({
    name: 'toolhub_authentication_failures_total',
    help: 'Credentials that were refused: passwords, bearer keys, access tokens, secrets of OAuth clients',
    labelNames: ['credential'],
    registers: [register],
    collect () {
      refused.reset()
      for (const [credential, count] of Object.entries(app.refusals.counts)) refused.inc({ credential }, count)
    }
  })

  app.gateway.addHook('onDone', ({ provider, exchange, outcome: given, isToolError, duration }) => {
    // The call continues; its last request is counted.
    if (given === 'input_required') return
    const outcome = given === 'ok' && isToolError ? 'tool_error' : given
    calls.add(provider, exchange.method, outcome, duration / 1_000)
  })
  app.gateway.addHook('onQuestion', (server) => { questions.inc({ server: calls.label(server) }) })
  app.decorate('metrics', {
    contentType: register.contentType,
    count,
    gauge: (name, help, read) => { gauge(name, help, read) },
    read: async (principal) => {
      const text = await register.metrics()
      if (!principal || (principal.isAdmin && principal.grant === undefined)) return text
      const visible = new Set(
        app.access.visible(makeView(principal, { kind: 'global', open: true })).map(({ server }) => server.name)
      )
      return text.split('\n').filter((line) => {
        const [, name] = /^[^#]*\bserver="((?:[^"\\]|\\.)*)"/.exec(line) ?? []
        return name === undefined || name === 'other' || visible.has(name)
      }).join('\n')
    }
  })
},
{ name: 'metrics', dependencies: ['config', 'connections', 'refusals', 'access', 'gateway', 'downstream', 'upstream'] })

import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { CallMetrics } from './call-metrics.ts'

/** A metric that a plugin has added. Its value is computed when the metrics are read. */
export interface AddedMetric {
  readonly kind: 'counter' | 'gauge'
  readonly name: string
  readonly help: string
  /** Returns the value, or, for a metric with the label `server`, the value for each label. */
  readonly read: () => number | ReadonlyMap<string, number>
}

interface MetricSources {
  /** The metrics of calls. */
  readonly calls: CallMetrics
  /** The numbers of requests from servers to clients (such as elicitation), by the label of the server. */
  readonly clientRequests: ReadonlyMap<string, number>
  /** The metrics of other plugins. */
  readonly added: readonly AddedMetric[]
}

/** Max number of servers in a gauge with one value for each server; beyond that, the last servers are omitted. */
const maxListedServers = 2_000

/** Creates the registry of the metrics, and starts to collect those of Node (event loop, garbage collection). */
export function createMetricRegistry (app: FastifyInstance, { calls, clientRequests, added }: MetricSources): Registry {
  const register = new Registry()
  collectDefaultMetrics({ register })
  calls.register(register)
  const countByServer = (name: string, help: string, read: () => ReadonlyMap<string, number>): void => {
    const counter = new Counter({
      name,
      help,
      labelNames: ['server'],
      registers: [register],
      collect () {
        counter.reset()
        for (const [server, count] of read()) counter.inc({ server }, count)
      }
    })
  }
  countByServer('toolhub_questions_total', 'Requests from upstream servers to clients', () => clientRequests)
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
  count('toolhub_connections_closed_total', 'Idle or new connections that were closed because of a ' +
    'limit', () => app.connections.closed)
  gauge('toolhub_sessions', 'MCP sessions', () => app.downstream.sessions.size)
  gauge('toolhub_calls_in_flight', 'Client requests that wait for a server', () => app.gateway.inFlight)
  gauge('toolhub_links', 'Connections to upstream servers', () => app.upstreams.linkCount)
  const states = new Gauge({
    name: 'toolhub_upstreams',
    help: 'Upstream servers by status',
    labelNames: ['status'],
    registers: [register],
    collect () {
      for (const [status, count] of Object.entries(app.upstreams.countByStatus())) {
        this.set({ status },
          count)
      }
    }
  })
  states.reset()
  const serverGauge = (name: string, help: string, member: 'isAvailable' | 'isCircuitOpen'): void => {
    new Gauge({
      name,
      help,
      labelNames: ['server'],
      registers: [register],
      collect () {
        this.reset()
        let left = maxListedServers
        for (const [server, state] of app.upstreams.states()) {
          if (left-- > 0) this.set({ server }, state[member] ? 1 : 0)
        }
      }
    }).reset()
  }
  serverGauge('toolhub_upstream_up', 'Whether an upstream server can be called: 1, or 0', 'isAvailable')
  serverGauge('toolhub_upstream_circuit_open', 'Whether requests to an upstream server are refused because it keeps ' +
    'failing: 1, or 0', 'isCircuitOpen')
  new Gauge(
    {
      name: 'toolhub_build_info',
      help: 'The running version: always 1',
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
  for (const { kind, name, help, read } of added) {
    const value = read()
    if (typeof value !== 'number') countByServer(name, help, () => value)
    else if (kind === 'counter') count(name, help, () => Number(read()))
    else gauge(name, help, () => Number(read()))
  }
  return register
}

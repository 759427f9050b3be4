import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { CallMetrics } from './call-metrics.ts'

/**
 * A metric that a plugin has added. `read` is called when the metrics are read, and returns the value, or, for a metric
 * with a label, the value for each label.
 */
export type AddedMetric = readonly [
  kind: 'counter' | 'gauge', name: string, help: string,
  read: () => number | Iterable<readonly [label: string, value: number]>, label?: string
]

/** Max number of servers in a gauge with one value for each server; beyond that, the last servers are omitted. */
const maxListedServers = 2_000

/**
 * Creates the registry of the metrics, and starts to collect those of Node (event loop, garbage collection).
 * @param added the metrics of other plugins
 */
export function createMetricRegistry (
  { config, connections, downstream, gateway, refusals, upstreams }: FastifyInstance,
  calls: CallMetrics,
  added: readonly AddedMetric[]
): Registry {
  const register = new Registry()
  collectDefaultMetrics({ register })
  calls.register(register)
  const add = (...[kind, name, help, read, label]: AddedMetric): void => {
    const metric = new (kind === 'counter' ? Counter : Gauge)({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [register],
      collect: () => {
        metric.reset()
        const value = read()
        if (typeof value === 'number') metric.inc(value)
        else for (const [each, count] of value) metric.inc({ [label ?? '']: each }, count)
      }
    })
  }
  const stateOf = (member: 'isAvailable' | 'isCircuitOpen') => (): Array<[string, number]> =>
    [...upstreams.states()].slice(0, maxListedServers).map(([server, state]) => [server, state[member] ? 1 : 0])
  add('gauge', 'toolhub_connections', 'Open connections of clients', () => connections.open)
  add('counter', 'toolhub_connections_closed_total', 'Idle or new connections that were closed because of a limit',
    () => connections.closed)
  add('gauge', 'toolhub_sessions', 'MCP sessions', () => downstream.sessions.size)
  add('gauge', 'toolhub_calls_in_flight', 'Client requests that wait for a server', () => gateway.inFlight)
  add('gauge', 'toolhub_links', 'Connections to upstream servers', () => upstreams.linkCount)
  add('gauge', 'toolhub_upstreams', 'Upstream servers by status',
    () => Object.entries(upstreams.countByStatus()), 'status')
  add('gauge', 'toolhub_upstream_up', 'Whether an upstream server can be called: 1, or 0',
    stateOf('isAvailable'), 'server')
  add('gauge', 'toolhub_upstream_circuit_open',
    'Whether requests to an upstream server are refused because it keeps failing: 1, or 0',
    stateOf('isCircuitOpen'), 'server')
  add('counter', 'toolhub_authentication_failures_total',
    'Credentials that were refused: passwords, bearer keys, access tokens, secrets of OAuth clients',
    () => Object.entries(refusals.counts), 'credential')
  for (const each of added) add(...each)
  new Gauge({
    name: 'toolhub_build_info',
    help: 'The running version: always 1',
    labelNames: ['version', 'node'],
    registers: [register]
  }).set({ version: config.version, node: process.version }, 1)
  return register
}

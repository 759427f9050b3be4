import fp from 'fastify-plugin'
import { loadOnce } from '../../base/config/index.ts'
import { makeView, type Principal } from '../../settings/index.ts'
import { CallMetrics } from './call-metrics.ts'
import type { AddedMetric } from './registry.ts'

declare module 'fastify' {
  interface FastifyInstance { metrics: Metrics }
}

interface Metrics {
  readonly contentType: string
  /**
   * Returns the metrics as text, without those of servers that the principal may not see.
   * @param principal undefined: all metrics are returned
   */
  read: (principal?: Principal) => Promise<string>
  /** Adds a counter. @param read returns the value of the counter */
  count: (name: string, help: string, read: () => number) => void
  /** Adds a counter with the label `server`. @returns a function that adds to the counter of a server */
  countByServer: (name: string, help: string) => (server: string, events: number) => void
  /** Adds a gauge. @param read returns the value of the gauge */
  gauge: (name: string, help: string, read: () => number) => void
}

/** `app.metrics`: the metrics of the gateway, for Prometheus. The library is loaded when they are first read. */
export default fp(async (app) => {
  // Names of the gateway's own providers begin with `$`, those of servers do not.
  const calls = new CallMetrics((server) => server.startsWith('$') || app.access.snapshot.servers.has(server))
  const countsByServer: Array<Map<string, number>> = []
  const added: AddedMetric[] = []
  const loadRegistry = loadOnce(async () =>
    (await import('./registry.ts')).createMetricRegistry(app, calls, added))

  app.gateway.addHook('onDone', ({ provider, exchange, outcome: callOutcome, isToolError, duration }) => {
    // If a call asks the client for input, it continues with another request. Only the last request is counted.
    if (callOutcome === 'input_required') return
    const outcome = callOutcome === 'ok' && isToolError ? 'tool_error' : callOutcome
    calls.add(provider, exchange.method, outcome, duration / 1_000)
  })
  app.decorate('metrics', {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    count: (name, help, read) => { added.push(['counter', name, help, read]) },
    countByServer: (name, help) => {
      const counts = new Map<string, number>()
      countsByServer.push(counts)
      added.push(['counter', name, help, () => counts, 'server'])
      return (server, events) => {
        const label = calls.labelOf(server)
        counts.set(label, (counts.get(label) ?? 0) + events)
      }
    },
    gauge: (name, help, read) => { added.push(['gauge', name, help, read]) },
    read: async (principal) => {
      const text = await (await loadRegistry()).metrics()
      if (!principal || (principal.isAdmin && principal.keyScope === undefined)) return text
      const visible = new Set(
        app.access.visibleServers(makeView(principal, { kind: 'global', open: true })).map(({ server }) => server.name)
      )
      return text.split('\n').filter((line) => {
        const [, name] = /^[^#]*\bserver="((?:[^"\\]|\\.)*)"/.exec(line) ?? []
        return name === undefined || name === 'other' || visible.has(name)
      }).join('\n')
    }
  })
  app.settings.on('changed', (next, former) => {
    if (next.servers === former.servers) return
    for (const name of former.servers.keys()) {
      if (next.servers.has(name)) continue
      calls.remove(name)
      for (const counts of countsByServer) counts.delete(name)
    }
  })
  const countQuestion =
    app.metrics.countByServer('toolhub_questions_total', 'Requests from upstream servers to clients')
  app.gateway.addHook('onQuestion', (server) => { countQuestion(server, 1) })
}, {
  name: 'metrics',
  dependencies: ['config', 'settings', 'connections', 'refusals', 'access', 'gateway', 'downstream', 'upstream']
})

import type { Registry } from 'prom-client'

/** The outcome of a request: a result, a result with `isError`, an error response, or no response. */
type Outcome = 'ok' | 'tool_error' | 'error' | 'failure'

const methods = ['tools/call', 'prompts/get', 'resources/read', 'completion/complete', 'other'] as const
const outcomes: readonly Outcome[] = ['ok', 'tool_error', 'error', 'failure']
/** Upper bounds of the latency buckets, in seconds. */
const bounds = [0.005, 0.02, 0.1, 0.5, 2, 10, 60]
/** Max number of servers with their own label. The others share a label, so that new names cannot fill the memory. */
const maxLabelledServers = 200

/**
 * The counters of one server. `countsByOutcome`: the numbers of requests by method and outcome. `buckets`: the numbers
 * by latency. `totalSeconds`: the sum of the latencies.
 */
interface ServerCounts { readonly countsByOutcome: number[], readonly buckets: number[], totalSeconds: number }

const newServerCounts = (): ServerCounts => ({
  countsByOutcome: new Array<number>(methods.length * outcomes.length).fill(0),
  buckets: new Array<number>(bounds.length + 1).fill(0),
  totalSeconds: 0
})

/** A sample in the form that prom-client's registry expects. */
interface Sample { metricName?: string, labels: Record<string, string | number>, value: number }

/** Counts requests by server, method and outcome, and by latency. Labels are composed when the metrics are read. */
export class CallMetrics {
  readonly #countsByServer = new Map<string, ServerCounts>()
  readonly #otherServers = newServerCounts()
  readonly #exists: (server: string) => boolean

  /** @param exists whether a server, or a provider of the gateway, has this name now */
  constructor (exists: (server: string) => boolean) { this.#exists = exists }

  /** Counts one request. @param seconds the time from the arrival of the request to its response */
  add (server: string, method: string, outcome: Outcome, seconds: number): void {
    const row = this.#countsOf(server)
    const known = methods.indexOf(method as typeof methods[number])
    const at = (known === -1 ? methods.length - 1 : known) * outcomes.length + outcomes.indexOf(outcome)
    row.countsByOutcome[at] = (row.countsByOutcome[at] ?? 0) + 1
    let within = 0
    while (within < bounds.length && seconds > (bounds[within] ?? 0)) within++
    row.buckets[within] = (row.buckets[within] ?? 0) + 1
    row.totalSeconds += seconds
  }

  /** Returns the label of a server: its name, or `other` if there are too many servers, or it was removed. */
  labelOf (server: string): string { return this.#countsOf(server) === this.#otherServers ? 'other' : server }

  /** Removes the counters of a removed server: its name and its place may be used again. */
  remove (server: string): void { this.#countsByServer.delete(server) }

  /** Registers the metrics `toolhub_calls_total` and `toolhub_call_seconds`. */
  register (register: Registry): void {
    const metric = (
      name: string, help: string, type: 'counter' | 'histogram', read: (server: string, row: ServerCounts) => Sample[]
    ) => {
      // A metric has more members, but the registry of prom-client uses only these.
      register.registerMetric({
        name,
        help,
        get: async () => ({
          name, help, type, aggregator: 'sum', values: this.#allCounts().flatMap(([server, row]) => read(server, row))
        }),
        reset: () => {}
      } as unknown as Parameters<Registry['registerMetric']>[0])
    }
    metric('toolhub_calls_total', 'Requests forwarded to upstream servers', 'counter', callSamples)
    metric('toolhub_call_seconds', 'Time from the arrival of a request to its response', 'histogram', (server, row) =>
      latencySamples('toolhub_call_seconds', server, row)
    )
  }

  #allCounts (): Array<[string, ServerCounts]> {
    return this.#otherServers.countsByOutcome.some((count) => count > 0)
      ? [...this.#countsByServer, ['other', this.#otherServers]]
      : [...this.#countsByServer]
  }

  #countsOf (server: string): ServerCounts {
    let row = this.#countsByServer.get(server)
    if (row) return row
    // The last calls of a removed server end after its removal.
    if (this.#countsByServer.size >= maxLabelledServers || !this.#exists(server)) return this.#otherServers
    this.#countsByServer.set(server, row = newServerCounts())
    return row
  }
}

/** Returns the samples of `toolhub_calls_total` for a server. */
function callSamples (server: string, { countsByOutcome: ended }: ServerCounts): Sample[] {
  return ended.flatMap((value, at) =>
    value === 0
      ? []
      : [
          {
            labels: {
              server,
              method: methods[Math.floor(at / outcomes.length)] ?? 'other',
              outcome: outcomes[at % outcomes.length] ?? 'ok'
            },
            value
          }
        ]
  )
}

/** Returns the samples of a latency histogram for a server. @param name the name of the metric */
function latencySamples (name: string, server: string, { buckets: counts, totalSeconds: sum }: ServerCounts): Sample[] {
  let count = 0
  const buckets = counts.map((value, at): Sample => ({
    metricName: `${name}_bucket`,
    labels: { le: bounds[at] ?? '+Inf', server },
    value: (count += value)
  }))
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { server }, value: sum },
    { metricName: `${name}_count`, labels: { server }, value: count }
  ]
}

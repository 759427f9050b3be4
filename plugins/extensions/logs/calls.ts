import fp from 'fastify-plugin'
import { toBearerKeyIdentity } from '../../settings/index.ts'
import { recordedErrorMessage, usernameOf } from '../activities/describe.ts'
import type { FinishedCall } from '../../gateway/index.ts'

/** Length to which a name or URI in a log line is truncated, in characters. */
const maxNameLength = 256

/** The fields in the log line of a call. The outcome `tool-error` is a result with `isError`. */
interface CallLine {
  user: string
  key?: string
  server: string
  method: string
  item?: string
  outcome: FinishedCall['outcome'] | 'tool-error'
  error?: string
  /** The duration of the call, in ms. */
  duration: number
  address?: string
}

/**
 * Logs one line for each call at level `debug`: user, server, item, duration and outcome, without payloads and without
 * the query of a resource's URI. If the log level is higher, no hook is registered.
 */
export default fp(async (app) => {
  if (app.log.level !== 'debug' && app.log.level !== 'trace') return
  app.gateway.addHook('onDone', (call) => {
    if (call.outcome === 'input_required') return
    const line = lineOf(call, (text) => app.gateway.redact(call.provider, text))
    app.log.debug({ call: line }, sentenceOf(line))
  })
}, { name: 'call-log', dependencies: ['logs', 'gateway'] })

function lineOf (
  { exchange, provider, item, outcome, isToolError, error, duration }: FinishedCall, redact: (text: string) => string
): CallLine {
  const { method, address, view: { principal } } = exchange
  const named = method === 'resources/read' ? item?.split(/[?#]/, 1)[0] : item
  const { keyName } = toBearerKeyIdentity(principal)
  return {
    user: usernameOf(principal) ?? principal.kind,
    ...(keyName !== undefined && { key: keyName }),
    server: provider,
    method,
    ...(named !== undefined && { item: redact(named).slice(0, maxNameLength) }),
    outcome: outcome === 'ok' && isToolError ? 'tool-error' : outcome,
    // A server's error message may repeat a payload.
    ...(error !== undefined && { error: redact(recordedErrorMessage(error, false)) }),
    duration: Math.round(duration * 10) / 10,
    ...(address !== undefined && { address })
  }
}

function sentenceOf ({ user, key, server, method, item, outcome, error, duration }: CallLine): string {
  const who = key === undefined ? user : `${user} (key ${JSON.stringify(key)})`
  const what = item === undefined ? method : `${method} ${JSON.stringify(item)}`
  return `${who}: ${server} ${what}: ${outcome} in ${duration} ms${error === undefined ? '' : `: ${error}`}`
}

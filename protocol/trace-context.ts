import { memberOf, withMembers } from './json.ts'
import { MemberNames } from './lookalikes.ts'

/**
 * The place of a request in a trace (W3C Trace Context). Servers are told of it by headers of the same names, and by
 * members of `_meta` (MCP, SEP-414), which reach those that are no HTTP servers as well.
 */
export interface TraceContext {
  readonly traceparent: string
  /** Undefined: there is none. */
  readonly tracestate: string | undefined
}

const names = new MemberNames(['traceparent', 'tracestate'])

/**
 * Changes of a request's params that also tell its place in a trace. The other members of `_meta` keep their bytes.
 * @param changes members of `params` that get another value, as JSON text
 */
export function withTrace (
  paramsText: string,
  changes: Readonly<Record<string, string>>,
  { traceparent, tracestate }: TraceContext
): Readonly<Record<string, string>> {
  const _meta = withMembers(names.strip(memberOf(paramsText, '_meta') ?? '{}'), {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate)
  })
  return { ...changes, _meta }
}

/** The headers of a request that tell its place in a trace. */
export const traceHeaders = ({ traceparent, tracestate }: TraceContext): Record<string, string> =>
  tracestate === undefined ? { traceparent } : { traceparent, tracestate }

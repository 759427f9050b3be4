import { memberOf, withMembers } from './json.ts'
import { GuardedNames } from './lookalikes.ts'

/**
 * The trace context of a request (W3C Trace Context). It is sent in HTTP headers with the names of these members; and
 * in `_meta` (SEP-414), for servers without HTTP.
 */
export interface TraceContext {
  readonly traceparent: string
  /** Undefined if there is no trace state. */
  readonly tracestate: string | undefined
}

const guardedNames = new GuardedNames(['traceparent', 'tracestate'])

/**
 * Adds a trace context to the changes of a request's params, in place of the sender's. The other members of `_meta`
 * keep their bytes.
 * @param changes members of `params` to replace, as JSON text
 */
export function changesWithTrace (
  paramsText: string,
  changes: Readonly<Record<string, string>>,
  { traceparent, tracestate }: TraceContext
): Readonly<Record<string, string>> {
  const _meta = withMembers(guardedNames.strip(memberOf(paramsText, '_meta') ?? '{}'), {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate)
  })
  return { ...changes, _meta }
}

export const traceHeaders = ({ traceparent, tracestate }: TraceContext): Record<string, string> =>
  tracestate === undefined ? { traceparent } : { traceparent, tracestate }

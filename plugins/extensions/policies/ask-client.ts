import { requireClientCapability } from '../../../protocol/capabilities.ts'
import { RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { isObject, memberOf } from '../../../protocol/json.ts'
import { extensionsLimits } from '../limits.ts'
import type { CallToApprove } from './call-digest.ts'
import { escapeInvisible } from './escape-invisible.ts'

/** What the user of a client answered. `late`: nothing in time. `unanswerable`: the client cannot ask its user. */
export type ApprovalAnswer = 'accepted' | 'declined' | 'late' | 'unanswerable'

/** A form without fields: the user only accepts or declines. */
const schema = { type: 'object', properties: {} }
const method = 'elicitation/create'

/**
 * Asks the user of the caller's client whether a call may be made (MCP, "Elicitation"): by a request in revisions up to
 * 2025-11-25, by a round of `input_required` in 2026-07-28.
 * @throws RpcError if the call was cancelled
 */
export async function askClientForApproval (exchange: Exchange, call: CallToApprove): Promise<ApprovalAnswer> {
  const params = { message: questionFor(call), requestedSchema: schema }
  const withdrawn = new AbortController()
  const { time } = extensionsLimits.approvals
  const timer = setTimeout(() => { withdrawn.abort('nobody has answered in time') }, time).unref()
  exchange.onCancel((reason) => { withdrawn.abort(reason) })
  try {
    requireClientCapability(exchange.client.capabilities, { method, params })
    const { resultText = '{}', errorText } = await exchange.ask({
      method,
      params,
      paramsText: JSON.stringify(params),
      signal: withdrawn.signal,
      outlivesRequest: false,
      progress: () => {}
    })
    if (errorText !== undefined) return 'unanswerable'
    return memberOf(resultText, 'action') === '"accept"' ? 'accepted' : 'declined'
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    if (exchange.cancelled !== undefined) throw error
    return withdrawn.signal.aborted ? 'late' : 'unanswerable'
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the question to the user: the call in words, with long arguments truncated. */
function questionFor ({ subject: { server, kind, name }, args, policy }: CallToApprove): string {
  const reason = policy.message ?? `The policy ${quote(policy.name)} asks before this call.`
  const verb = kind === 'tool' ? 'Run the tool' : kind === 'prompt' ? 'Get the prompt' : 'Read the resource'
  return `${reason}\n\n${verb} ${quote(name)} of the server ${quote(server)}${describeArguments(args)}`
}

/** Returns the end of the question: the arguments of the call, one per line. */
function describeArguments (args: unknown): string {
  const entries = isObject(args) ? Object.entries(args) : []
  if (entries.length === 0) return ' without arguments?'
  const lines = entries.map(([name, value]) => `- ${quote(name)}: ${quote(value)}`).join('\n')
  const { shown } = extensionsLimits.approvals
  const rest = lines.length - shown
  return ` with these arguments?\n${rest > 0 ? `${lines.slice(0, shown)}… (${rest} more characters)` : lines}`
}

const quote = (value: unknown): string => escapeInvisible(JSON.stringify(value ?? null))

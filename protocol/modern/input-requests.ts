import type { ClientCapabilities } from '../capabilities.ts'
import { memberOf, membersOf } from '../json.ts'

// What an answer asks a client for (MCP 2026-07-28, "Multi Round-Trip Requests"), as both sides of the gateway read it.

/** What a server may ask a client for. */
export const questions: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

/** Why a server is refused whose clients cannot know what to answer. */
export const saysNothing = 'it asks for input, and says not for what'
export const asksNoRequest = 'it asks what is no request'

/**
 * Whether an answer that asks for input says for which, or has a state at least: with a state alone, a server defers its work.
 * @param resultText an `input_required`
 */
export function saysWhat (resultText: string): boolean {
  if (memberOf(resultText, 'requestState')?.startsWith('"') === true) return true
  const requests = memberOf(resultText, 'inputRequests')
  return requests !== undefined && !(requests.startsWith('{') && membersOf(requests).length === 0)
}

/** The capabilities of a client that can be asked this; undefined: no client can. */
export function requiredFor (method: string, params: Readonly<Record<string, unknown>>): ClientCapabilities | undefined {
  switch (method) {
    case 'elicitation/create': return { elicitation: params.mode === 'url' ? { url: {} } : { form: {} } }
    case 'sampling/createMessage': return { sampling: params.tools === undefined ? {} : { tools: {} } }
    case 'roots/list': return { roots: {} }
    default: return undefined
  }
}

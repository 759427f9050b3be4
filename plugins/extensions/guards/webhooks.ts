import type { Snapshot } from '../../../db/store.ts'
import { RuleRefusalError } from '../../../protocol/errors.ts'
import { memoryOf } from '../../../protocol/text.ts'
import type { Guard } from '../../../schemas/guards.ts'
import { memoryBudget, type Release, ShareError } from '../../base/limits/index.ts'
import type { Outbound } from '../../base/outbound/index.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { toBearerKeyIdentity, teamsOf } from '../../settings/index.ts'
import { usernameOf } from '../activities/describe.ts'
import { extensionsLimits } from '../limits.ts'
import { askWebhook, type WebhookSettings, type WebhookQuestion } from './ask-webhook.ts'

/** The kind of item that a webhook is asked about, by method. For other methods, no webhook is asked. */
const kinds: Readonly<Record<string, WebhookQuestion['kind']>> = {
  'tools/call': 'tool',
  'tasks/result': 'tool',
  'tasks/get': 'tool',
  'prompts/get': 'prompt',
  'resources/read': 'resource',
  'resources/subscribe': 'resource',
  'subscriptions/listen': 'resource',
  'completion/complete': 'completion'
}

interface GuardWebhooksDeps {
  readonly snapshot: () => Pick<Snapshot, 'teams' | 'users'>
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly warn: (error: unknown, sentence: string) => void
}

/** Asks the webhooks of guards about arguments and results. */
export class GuardWebhooks {
  readonly #deps: GuardWebhooksDeps

  constructor (deps: GuardWebhooksDeps) {
    this.#deps = deps
  }

  /**
   * Asks a guard's webhook, if the guard has one and `kinds` contains the method.
   * @param text the arguments or the result, as JSON text
   * @returns the text to use: the given text, or the replacement of the webhook
   * @throws RuleRefusalError if the webhook rejects the text, or is unavailable and `whenAway` is not `allow`
   */
  async ask (
    guard: Guard, { exchange, provider: server, item }: Pick<GatewayCall, 'exchange' | 'provider' | 'item'>,
    type: WebhookQuestion['type'], text: string
  ): Promise<string> {
    const kind = kinds[exchange.method]
    if (guard.webhook === undefined || kind === undefined) return text
    const principal = describePrincipal(this.#deps.snapshot(), exchange)
    const question = { type, principal, server, tool: item ?? '', kind, text }
    const release = reserveMemory(guard, exchange.client, text)
    const answer = await this.#answerOf(guard, guard.webhook, question).finally(release)
    if (answer.action === 'accept') return text
    if (answer.action === 'replace') return answer.text
    throw new RuleRefusalError('guard', answer.message ?? `The guard "${guard.name}" refuses this call`)
  }

  async #answerOf (guard: Guard, webhook: WebhookSettings, question: WebhookQuestion): ReturnType<typeof askWebhook> {
    try {
      return await askWebhook(this.#deps.outbound, webhook, question)
    } catch (error) {
      this.#deps.warn(error, `The webhook of the guard ${guard.name} is unavailable`)
      if (webhook.whenAway === 'allow') return { action: 'accept' }
      return { action: 'reject', message: `The guard "${guard.name}" cannot decide now: its webhook is unavailable` }
    }
  }
}

/** Reserves the memory of a text until a webhook has answered. @throws RuleRefusalError if there is too little */
function reserveMemory (guard: Guard, { owner, id }: GatewayCall['exchange']['client'], text: string): Release {
  try {
    return memoryBudget.reserve(owner ?? id, memoryOf(text) * extensionsLimits.guards.cost)
  } catch (error) {
    if (!(error instanceof ShareError)) throw error
    throw new RuleRefusalError('guard', `The guard "${guard.name}" could not ask its webhook: ${error.message}`)
  }
}

/** Returns the description of the caller that is sent to webhooks. */
function describePrincipal (
  snapshot: Pick<Snapshot, 'teams' | 'users'>, { address, view: { principal } }: GatewayCall['exchange']
): object {
  const { keyId, keyName } = toBearerKeyIdentity(principal)
  return {
    username: usernameOf(principal),
    isAdmin: principal.isAdmin,
    teams: teamsOf(snapshot, principal),
    key: keyId === undefined ? undefined : { id: keyId, name: keyName },
    address
  }
}

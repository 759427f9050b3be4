import type { Snapshot } from '../../../db/store.ts'
import { Refusal, RpcError } from '../../../protocol/errors.ts'
import { memberOf } from '../../../protocol/json.ts'
import { toRpcError } from '../../../protocol/message.ts'
import type { Guard } from '../../../schemas/guards.ts'
import type { Outbound } from '../../base/outbound/index.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { authorKeyOf, teamsOf } from '../../settings/index.ts'
import { usernameOf } from '../activities/describe.ts'
import { GuardedExchange } from './guarded-exchange.ts'
import { guardsFor, type Side } from './rules.ts'
import { ContentRefusal, type Place, type Screen } from './screen.ts'
import { askWebhook, type Webhook, type WebhookQuestion } from './webhook.ts'

/** The members of params that hold content, by method. */
const contentMembers: Readonly<Record<string, readonly string[]>> = {
  'tools/call': ['arguments'],
  'prompts/get': ['arguments'],
  'resources/read': ['uri'],
  'completion/complete': ['argument', 'context']
}
/** What a webhook is asked about, by method. */
const kinds: Readonly<Record<string, WebhookQuestion['kind']>> =
  { 'tools/call': 'tool', 'tasks/result': 'tool', 'prompts/get': 'prompt', 'resources/read': 'resource' }

interface GuardsDeps {
  readonly active: () => readonly Guard[]
  readonly snapshot: () => Pick<Snapshot, 'teams' | 'users'>
  readonly screen: Screen
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly warn: (error: unknown, sentence: string) => void
}

/** Applies the configured guards to what passes through the gateway. */
export class Guards {
  readonly #deps: GuardsDeps
  readonly #exchanges = new WeakMap<GatewayCall, GuardedExchange>()

  constructor (deps: GuardsDeps) {
    this.#deps = deps
  }

  /** Checks the arguments of a call, and lets its notifications be checked. @throws Refusal */
  onCall (call: GatewayCall): Promise<void> | undefined {
    const active = this.#deps.active()
    if (active.length === 0) return undefined
    const place = placeOf(call, 'arguments')
    const onResults = guardsFor(active, 'results', place.server, place.tool)
    const onArguments = guardsFor(active, 'arguments', place.server, place.tool)
    if (onArguments.length > 0) return this.#checkArguments(call, place, onArguments, onResults)
    if (onResults.length > 0) this.#replaceExchange(call, {}, onResults)
    return undefined
  }

  /** Checks a result. @returns the result to use @throws Refusal */
  onOutput (call: GatewayCall, result: string): string | Promise<string> {
    const guards = this.#onResults(call)
    return guards.length === 0 ? result : this.#checkResult(call, guards, result)
  }

  /** Checks an error. @returns the error to use @throws Refusal */
  onError (call: GatewayCall, error: RpcError): RpcError | Promise<RpcError> {
    const guards = error instanceof Refusal ? [] : this.#onResults(call)
    return guards.length === 0 ? error : this.#checkError(call, guards, error)
  }

  /** Checks a notification that belongs to no request. @returns undefined when it may not be sent */
  onNotification (server: string, paramsText: string): string | undefined | Promise<string | undefined> {
    const guards = guardsFor(this.#deps.active(), 'results', server, undefined)
    return this.#checkNotification(guards, paramsText, { side: 'results', server, tool: undefined }, server)
  }

  #onResults (call: GatewayCall): Guard[] {
    const active = this.#deps.active()
    if (active.length === 0) return []
    const { side, server, tool } = placeOf(call, 'results')
    return guardsFor(active, side, server, tool)
  }

  async #checkArguments (
    call: GatewayCall, place: Place, guards: readonly Guard[], onResults: readonly Guard[]
  ): Promise<void> {
    const { method, paramsText } = call.exchange
    const changed: Record<string, string> = {}
    try {
      for (const name of contentMembers[method] ?? []) {
        const given = memberOf(paramsText, name) ?? (name === 'arguments' ? '{}' : undefined)
        if (given === undefined) continue
        let text = given
        for (const guard of guards) {
          try {
            text = await this.#deps.screen.apply(guard, text, place, ownerOf(call))
          } catch (error) {
            if (error instanceof ContentRefusal) changed[name] = error.masked
            throw error
          }
          if (name === 'uri') this.#refuseChangedUri(guard, text === given, () => { changed.uri = text })
          else if (name === 'arguments') text = await this.#askWebhook(call, guard, 'call', text)
          if (text !== given) changed[name] = text
        }
      }
    } finally {
      // Records of a refused call have no more than those of others.
      if (Object.keys(changed).length > 0 || onResults.length > 0) this.#replaceExchange(call, changed, onResults)
      if (changed.uri !== undefined) call.item = JSON.parse(changed.uri.startsWith('"') ? changed.uri : '""') as string
    }
  }

  /** The URI of a resource is its address: another one would be another resource. */
  #refuseChangedUri (guard: Guard, isSame: boolean, note: () => void): void {
    if (isSame) return
    note()
    throw new Refusal('guard', `The guard "${guard.name}" refuses this: the URI contains what it masks`)
  }

  async #checkResult (call: GatewayCall, guards: readonly Guard[], result: string): Promise<string> {
    const place = placeOf(call, 'results')
    let text = result
    for (const guard of guards) {
      text = await this.#deps.screen.apply(guard, text, place, ownerOf(call))
      text = await this.#askWebhook(call, guard, 'result', text)
    }
    await this.#exchanges.get(call)?.sentNotifications
    return text
  }

  async #checkError (call: GatewayCall, guards: readonly Guard[], error: RpcError): Promise<RpcError> {
    const given = error.toText()
    let text = given
    const place = placeOf(call, 'results')
    for (const guard of guards) text = await this.#deps.screen.apply(guard, text, place, ownerOf(call))
    if (text === given) return error
    const { code, message } = toRpcError(text)
    return new RpcError(code, message, error.reason, text)
  }

  #checkNotification (
    guards: readonly Guard[], paramsText: string, place: Place, owner: string
  ): string | undefined | Promise<string | undefined> {
    let text: string | Promise<string> = paramsText
    try {
      for (const guard of guards) {
        const apply = (former: string): string | Promise<string> => this.#deps.screen.apply(guard, former, place, owner)
        text = typeof text === 'string' ? apply(text) : text.then(apply)
      }
    } catch {
      // It was refused and reported.
      return undefined
    }
    return typeof text === 'string' ? text : text.catch(() => undefined)
  }

  #replaceExchange (
    call: GatewayCall, members: Readonly<Record<string, string>>, onResults: readonly Guard[]
  ): void {
    const place = placeOf(call, 'results')
    const owner = ownerOf(call)
    const exchange = new GuardedExchange(call.exchange, members, (paramsText) =>
      this.#checkNotification(onResults, paramsText, place, owner))
    this.#exchanges.set(call, exchange)
    call.exchange = exchange
  }

  /** Asks a guard's webhook, if it has one. @returns the text to use @throws Refusal */
  async #askWebhook (call: GatewayCall, guard: Guard, type: 'call' | 'result', text: string): Promise<string> {
    const { exchange: { method }, provider: server, item } = call
    const kind = kinds[method]
    if (guard.webhook === undefined || kind === undefined) return text
    const principal = describePrincipal(this.#deps.snapshot(), call.exchange)
    const question = { type, principal, server, tool: item ?? '', kind, text }
    const answer = await this.#answerOf(guard, guard.webhook, question)
    if (answer.action === 'accept') return text
    if (answer.action === 'replace') return answer.text
    throw new Refusal('guard', answer.message ?? `The guard "${guard.name}" refuses this`)
  }

  async #answerOf (guard: Guard, webhook: Webhook, question: WebhookQuestion): ReturnType<typeof askWebhook> {
    try {
      return await askWebhook(this.#deps.outbound, webhook, question)
    } catch (error) {
      this.#deps.warn(error, `The webhook of the guard ${guard.name} is away`)
      if (webhook.whenAway === 'allow') return { action: 'accept' }
      return { action: 'reject', message: `The guard "${guard.name}" cannot decide now: its webhook is away` }
    }
  }
}

const ownerOf = ({ exchange: { client } }: GatewayCall): string => client.owner ?? client.id

/** Prompts and resources are no tools; a task, and whatever else a server answers, may come of any of its tools. */
function placeOf (call: GatewayCall, side: Side): Place {
  const { exchange: { method }, provider: server, item } = call
  if (method === 'tools/call') return { side, server, tool: item, call }
  return { side, server, tool: method.startsWith('tasks/') ? undefined : null, call }
}

/** The caller, as a webhook is told. */
function describePrincipal (
  snapshot: Pick<Snapshot, 'teams' | 'users'>, { address, view: { principal } }: GatewayCall['exchange']
): object {
  const { keyId, keyName } = authorKeyOf(principal)
  return {
    username: usernameOf(principal),
    isAdmin: principal.isAdmin,
    teams: teamsOf(snapshot, principal),
    key: keyId === undefined ? undefined : { id: keyId, name: keyName },
    address
  }
}

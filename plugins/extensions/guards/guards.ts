import type { Snapshot } from '../../../db/store.ts'
import { Refusal, RpcError } from '../../../protocol/errors.ts'
import { streamMethod } from '../../../protocol/events.ts'
import { memberOf, membersOf, withMembers } from '../../../protocol/json.ts'
import { toRpcError } from '../../../protocol/message.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import type { Guard } from '../../../schemas/guards.ts'
import type { Outbound } from '../../base/outbound/index.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { authorKeyOf, teamsOf } from '../../settings/index.ts'
import { usernameOf } from '../activities/describe.ts'
import { GuardedExchange } from './guarded-exchange.ts'
import { guardsFor, type Side } from './rules.ts'
import { ContentRefusal, type Place, type Screen } from './screen.ts'
import { askWebhook, type Webhook, type WebhookQuestion } from './webhook.ts'

/** The methods with a name, which the gateway resolves, and arguments, which a webhook is asked about. */
const called: ReadonlySet<string> = new Set(['tools/call', 'prompts/get'])
/** Members of params that the server or the gateway has made, or that answer questions. */
const unsearched: ReadonlySet<string> = new Set(['taskId', 'cursor', 'requestState', 'inputResponses'])
/** Members of params that say what is asked for: another text would ask for something else. */
const addresses: ReadonlyMap<string, string> = new Map([['uri', 'the URI'], ['ref', '"ref"']])
const isAboutEvents = (method: string): boolean => method.startsWith('events/')
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
    const place = placeOf(call, 'arguments')
    // A stream stays open: its events pass the guards of their time.
    const isScreened = call.exchange.method === streamMethod || this.#onResults(call).length > 0
    const onArguments = guardsFor(this.#deps.active(), 'arguments', place.server, place.tool)
    if (onArguments.length > 0) return this.#checkArguments(call, place, onArguments, isScreened)
    if (isScreened) this.#replaceExchange(call, {})
    return undefined
  }

  /** Checks a subscription to a resource, which is sent as it is or not at all. @throws Refusal */
  async onSubscribe ({ paramsText, client }: GatewayCall['exchange'], server: string): Promise<void> {
    const place: Place = { side: 'arguments', server, tool: null }
    const text = withoutProgressToken(paramsText)
    for (const guard of guardsFor(this.#deps.active(), 'arguments', server, null)) {
      if (await this.#deps.screen.apply(guard, text, place, client.owner ?? client.id) === text) continue
      throw new Refusal('guard', `The guard "${guard.name}" refuses this: the params contain what it masks`)
    }
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

  /** @param isScreened whether notifications of the call are checked */
  async #checkArguments (
    call: GatewayCall, place: Place, guards: readonly Guard[], isScreened: boolean
  ): Promise<void> {
    const { method, paramsText } = call.exchange
    const changed: Record<string, string> = {}
    let refusal: Refusal | undefined
    try {
      for (const name of searchedMembers(method, paramsText)) {
        const given = memberOf(paramsText, name) ?? '{}'
        let text = given
        for (const guard of guards) {
          try {
            text = await this.#searchMember(guard, { method, name, text }, place, ownerOf(call))
          } catch (error) {
            // The other members are searched for the records.
            if (!(error instanceof ContentRefusal)) throw error
            refusal ??= error
            text = error.masked
          }
          if (name === 'arguments' && called.has(method) && !refusal) {
            text = await this.#askWebhook(call, guard, 'call', text)
          }
          if (text !== given) changed[name] = text
        }
      }
      if (refusal) throw refusal
    } finally {
      // Records of a refused call have no more than those of others.
      if (Object.keys(changed).length > 0 || isScreened) this.#replaceExchange(call, changed)
      if (changed.uri !== undefined) call.item = JSON.parse(changed.uri.startsWith('"') ? changed.uri : '""') as string
    }
  }

  /** @returns the member's text to use @throws ContentRefusal */
  async #searchMember (
    guard: Guard, { method, name, text }: { method: string, name: string, text: string }, place: Place, owner: string
  ): Promise<string> {
    const apply = async (part: string): Promise<string> => await this.#deps.screen.apply(guard, part, place, owner)
    // The token of progress is valid between the client and the gateway.
    const token = name === '_meta' ? memberOf(text, 'progressToken') : undefined
    if (token !== undefined) {
      const rest = withMembers(text, { progressToken: undefined })
      const masked = await apply(rest)
      return masked === rest ? text : withMembers(masked, { progressToken: token })
    }
    const masked = await apply(text)
    // What a client subscribes to stays as it is.
    const address = addresses.get(name) ?? (isAboutEvents(method) ? `"${name}"` : undefined)
    if (masked === text || address === undefined) return masked
    throw new ContentRefusal(`The guard "${guard.name}" refuses this: ${address} contains what it masks`, masked)
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

  #replaceExchange (call: GatewayCall, members: Readonly<Record<string, string>>): void {
    const place = placeOf(call, 'results')
    const owner = ownerOf(call)
    const exchange = new GuardedExchange(call.exchange, members, (paramsText) =>
      this.#checkNotification(this.#onResults(call), paramsText, place, owner))
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

/** The members of params that are searched. */
function searchedMembers (method: string, paramsText: string): string[] {
  // A subscription can end, whatever it was made for.
  if (method === 'events/unsubscribe') return []
  const names = new Set(membersOf(paramsText).map(({ key }) => key).filter((key) => !unsearched.has(key)))
  // The client's address and secret for deliveries stay at the gateway.
  if (isAboutEvents(method)) return [...names].filter((name) => name !== 'delivery')
  if (!called.has(method)) return [...names]
  names.delete('name')
  names.delete('arguments')
  return [...names, 'arguments']
}

/** Prompts and resources are no tools; a task, and an event, may come of any of a server's tools. */
function placeOf (call: GatewayCall, side: Side): Place {
  const { exchange: { method }, provider: server, item } = call
  if (method === 'tools/call') return { side, server, tool: item, call }
  return { side, server, tool: method.startsWith('tasks/') || isAboutEvents(method) ? undefined : null, call }
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

import { isDeepStrictEqual } from 'node:util'
import { RuleRefusalError, RpcError } from '../../../protocol/errors.ts'
import { streamMethod } from '../../../protocol/events.ts'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { parseRpcError } from '../../../protocol/message.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import type { Guard } from '../../../schemas/guards.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { GuardedExchange } from './guarded-exchange.ts'
import { guardsFor, type CallSide } from './rules.ts'
import { ContentRefusal, SearchedCharacterCounter, type TextOrigin, type ContentScreener } from './screen.ts'
import type { GuardWebhooks } from './webhooks.ts'
import { diffParams, stringifyParams, parseParams, paramWithoutProgressToken, type Param } from './params.ts'

/** Methods whose params are `name`, which the gateway resolves, and `arguments`, which guards' webhooks get. */
const namedMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get'])
/**
 * Members of params that are not searched: values that the server or the gateway created, and the client's answers to
 * questions from the server.
 */
const unsearchedMembers: ReadonlySet<string> = new Set(['taskId', 'cursor', 'requestState', 'inputResponses'])
/**
 * Members of params that address an object, with their names in messages. They are not masked, since they would address
 * another object; content found in them refuses the call.
 */
const addressMembers: ReadonlyMap<string, string> = new Map([['uri', 'the URI'], ['ref', '"ref"']])
const isAboutEvents = (method: string): boolean => method.startsWith('events/')
/**
 * The members of params that are sent to webhooks, by method. For `namedMethods`, `arguments` is sent; for all methods
 * that are in neither, nothing.
 */
const webhookMembers: Readonly<Record<string, readonly string[]>> =
  { 'resources/read': ['uri'], 'completion/complete': ['ref', 'argument', 'context'] }

/** A message to search. `owner`: whose share of the worker threads is used. `searched`: counts what was searched. */
interface Message { readonly origin: TextOrigin, readonly owner: string, readonly searched: SearchedCharacterCounter }

interface GuardsDeps {
  /** Returns the enabled guards, in order. */
  readonly active: () => readonly Guard[]
  readonly screen: ContentScreener
  readonly webhooks: GuardWebhooks
}

/** Applies the configured guards to the messages that pass through the gateway. */
export class Guards {
  readonly #deps: GuardsDeps
  /** Maps each call to the exchange that has replaced its original one. */
  readonly #exchanges = new WeakMap<GatewayCall, GuardedExchange>()

  constructor (deps: GuardsDeps) {
    this.#deps = deps
  }

  /**
   * Checks arguments, and replaces `call.exchange` by one with masked arguments, which also checks notifications.
   * @throws RuleRefusalError
   */
  onCall (call: GatewayCall): Promise<void> | undefined {
    const origin = originOf(call, 'arguments')
    // A stream stays open, so its events are checked by the guards that are active when they arrive.
    const isScreened = call.exchange.method === streamMethod || this.#onResults(call).length > 0
    const onArguments = guardsFor(this.#deps.active(), 'arguments', origin.server, origin.tool)
    if (onArguments.length > 0) return this.#checkArguments(call, origin, onArguments)
    if (isScreened) this.#replaceExchange(call, {})
    return undefined
  }

  /**
   * Checks a subscription to a resource. The params cannot be changed, so a request with content to mask is refused.
   * @throws RuleRefusalError
   */
  async onSubscribe (exchange: GatewayCall['exchange'], server: string, uri: string): Promise<void> {
    const { paramsText, client } = exchange
    const origin: TextOrigin = { side: 'arguments', server, tool: null }
    const text = withoutProgressToken(paramsText)
    const searched = new SearchedCharacterCounter()
    for (const guard of guardsFor(this.#deps.active(), 'arguments', server, null)) {
      if (await this.#deps.screen.apply(guard, text, origin, client.owner ?? client.id, searched) !== text) {
        throw new RuleRefusalError(
          'guard', `The guard "${guard.name}" refuses this call: the params contain what it masks`
        )
      }
      const asked = `{"uri":${JSON.stringify(uri)}}`
      const answer = await this.#deps.webhooks.ask(guard, { exchange, provider: server, item: uri }, 'call', asked)
      if (!isSame(answer, asked)) throw otherAddress(guard)
    }
  }

  /** Checks a result, as JSON text. @returns the result to use @throws RuleRefusalError */
  onOutput (call: GatewayCall, result: string): string | Promise<string> {
    const guards = this.#onResults(call)
    return guards.length === 0 ? result : this.#checkResult(call, guards, result)
  }

  /** Checks an error. Refusals of rules are not checked. @returns the error to use @throws RuleRefusalError */
  onError (call: GatewayCall, error: RpcError): RpcError | Promise<RpcError> {
    const guards = error instanceof RuleRefusalError ? [] : this.#onResults(call)
    return guards.length === 0 ? error : this.#checkError(call, guards, error)
  }

  /**
   * Checks a server's notification that belongs to no request.
   * @returns the params to send; undefined if the notification must not be sent
   */
  onNotification (server: string, paramsText: string): string | undefined | Promise<string | undefined> {
    const guards = guardsFor(this.#deps.active(), 'results', server, undefined)
    return this.#checkNotification(guards, paramsText, { side: 'results', server, tool: undefined }, server)
  }

  /** Returns the guards that check the results of a call. */
  #onResults (call: GatewayCall): Guard[] {
    const active = this.#deps.active()
    if (active.length === 0) return []
    const { side, server, tool } = originOf(call, 'results')
    return guardsFor(active, side, server, tool)
  }

  async #checkArguments (call: GatewayCall, origin: TextOrigin, guards: readonly Guard[]): Promise<void> {
    const { method, paramsText } = call.exchange
    const original = searchedMembers(method, paramsText)
    const message = { origin, owner: ownerOf(call), searched: new SearchedCharacterCounter() }
    let members = original
    let refusal: RuleRefusalError | undefined
    try {
      for (const guard of guards) {
        const found = await this.#searchMembers(guard, method, members, message)
        members = found.members
        // After a refusal, the remaining guards still mask the members, for the record of the call.
        refusal ??= found.refusal
        if (!refusal) members = await this.#askWebhook(guard, call, members)
      }
      if (refusal) throw refusal
    } finally {
      // The record of a refused call contains the masked members too.
      const changed = diffParams(original, members)
      this.#replaceExchange(call, Object.fromEntries(changed))
      const uri = changed.get('uri')
      if (uri !== undefined) call.item = JSON.parse(uri.startsWith('"') ? uri : '""') as string
    }
  }

  /**
   * Searches members of params, joined to one text, and masks the content that the guard finds.
   * @returns the masked members; with `refusal` if the guard refuses the call: then they are only recorded
   */
  async #searchMembers (
    guard: Guard, method: string, members: readonly Param[], { origin, owner, searched }: Message
  ): Promise<{ members: readonly Param[], refusal?: RuleRefusalError }> {
    const text = stringifyParams(
      members.map(({ name, text }) => ({ name, text: paramWithoutProgressToken(name, text) }))
    )
    let masked: string
    let refusal: RuleRefusalError | undefined
    try {
      masked = await this.#deps.screen.apply(guard, text, origin, owner, searched)
    } catch (error) {
      if (!(error instanceof ContentRefusal)) throw error
      refusal = error
      masked = error.masked
    }
    if (masked === text) return { members }
    const parts = parseParams(masked)
    const found = members.map((member, at): Param => {
      // If the text could not be searched, `masked` is `{}`, and the value of each member is replaced by `{}`.
      const { name, text } = parts[at] ?? { name: member.name, text: '{}' }
      if (name === member.name && text === paramWithoutProgressToken(name, member.text)) return member
      const token = member.name === '_meta' ? memberOf(member.text, 'progressToken') : undefined
      return { name, text: token === undefined ? text : withMembers(text, { progressToken: token }) }
    })
    for (const [at, member] of members.entries()) {
      // Addresses, and the params of methods for events, are not changed: content found in them refuses the call.
      const shownMember = isAboutEvents(method) ? `"${found[at]?.name ?? ''}"` : undefined
      const address = addressMembers.get(member.name) ?? shownMember
      if (found[at] === member || address === undefined) continue
      refusal ??= new RuleRefusalError(
        'guard', `The guard "${guard.name}" refuses this call: ${address} contains what it masks`
      )
    }
    return { members: found, refusal }
  }

  /** Asks a guard's webhook about members of params. @returns the members to use @throws RuleRefusalError */
  async #askWebhook (guard: Guard, call: GatewayCall, members: readonly Param[]): Promise<readonly Param[]> {
    if (guard.webhook === undefined) return members
    const { method } = call.exchange
    const names = webhookMembers[method]
    if (!namedMethods.has(method) && !names) return members
    const asked = members.filter(({ name }) => names === undefined ? name === 'arguments' : names.includes(name))
    const text = names === undefined ? asked[0]?.text ?? '{}' : stringifyParams(asked)
    const answer = await this.#deps.webhooks.ask(guard, call, 'call', text)
    if (answer === text) return members
    return members.map((member) => {
      if (!asked.includes(member)) return member
      const replaced = names === undefined ? answer : memberOf(answer, member.name) ?? 'null'
      if (!addressMembers.has(member.name)) return { name: member.name, text: replaced }
      if (!isSame(replaced, member.text)) throw otherAddress(guard)
      return member
    })
  }

  async #checkResult (call: GatewayCall, guards: readonly Guard[], result: string): Promise<string> {
    const origin = originOf(call, 'results')
    const searched = new SearchedCharacterCounter()
    let text = result
    for (const guard of guards) {
      text = await this.#deps.screen.apply(guard, text, origin, ownerOf(call), searched)
      const webhookResult = guard.webhook === undefined ? undefined : webhookResultIn(call, text)
      if (webhookResult === undefined) continue
      const answer = await this.#deps.webhooks.ask(guard, call, 'result', webhookResult)
      if (answer === webhookResult) continue
      const resultType = memberOf(webhookResult, 'resultType')
      const result = withMembers(answer, {}, resultType === undefined ? {} : { resultType })
      text = webhookResult === text ? answer : withMembers(text, { result })
    }
    await this.#exchanges.get(call)?.whenNotificationsSent
    return text
  }

  async #checkError (call: GatewayCall, guards: readonly Guard[], error: RpcError): Promise<RpcError> {
    const original = error.toText()
    let text = original
    const origin = originOf(call, 'results')
    const searched = new SearchedCharacterCounter()
    for (const guard of guards) text = await this.#deps.screen.apply(guard, text, origin, ownerOf(call), searched)
    if (text === original) return error
    const { code, message } = parseRpcError(text)
    return new RpcError(code, message, error.reason, text)
  }

  #checkNotification (
    guards: readonly Guard[], paramsText: string, origin: TextOrigin, owner: string
  ): string | undefined | Promise<string | undefined> {
    let text: string | Promise<string> = paramsText
    const searched = new SearchedCharacterCounter()
    try {
      for (const guard of guards) {
        const apply = (former: string): string | Promise<string> =>
          this.#deps.screen.apply(guard, former, origin, owner, searched)
        text = typeof text === 'string' ? apply(text) : text.then(apply)
      }
    } catch {
      // The refusal has been reported.
      return undefined
    }
    return typeof text === 'string' ? text : text.catch(() => undefined)
  }

  #replaceExchange (call: GatewayCall, members: Readonly<Record<string, string | undefined>>): void {
    const origin = originOf(call, 'results')
    const argumentsOrigin = originOf(call, 'arguments')
    const owner = ownerOf(call)
    const exchange = new GuardedExchange(call.exchange, members, (paramsText) =>
      this.#checkNotification(this.#onResults(call), paramsText, origin, owner), (cancelText) => {
      const { server, tool } = argumentsOrigin
      const guards = guardsFor(this.#deps.active(), 'arguments', server, tool)
      const checked = this.#checkNotification(guards, cancelText, argumentsOrigin, owner)
      return typeof checked === 'string' ? checked : undefined
    })
    this.#exchanges.set(call, exchange)
    call.exchange = exchange
  }
}

/**
 * Returns the part of a result that is sent to a guard's webhook; undefined if there is none. A response to `tasks/get`
 * contains the result of the tool once the task has ended.
 */
const webhookResultIn = ({ exchange }: GatewayCall, result: string): string | undefined =>
  exchange.method === 'tasks/get' ? memberOf(result, 'result') : result

const isSame = (one: string, other: string): boolean => isDeepStrictEqual(JSON.parse(one), JSON.parse(other))
const otherAddress = ({ name }: Guard): RuleRefusalError =>
  new RuleRefusalError(
    'guard', `The guard "${name}" refuses this call: its webhook replaced the name or URI of the item`
  )
const ownerOf = ({ exchange: { client } }: GatewayCall): string => client.owner ?? client.id

/** Returns the members of params that guards search; for `namedMethods`, `arguments` is always one of them. */
function searchedMembers (method: string, paramsText: string): readonly Param[] {
  // Ending a subscription is never refused.
  if (method === 'events/unsubscribe') return []
  const members = parseParams(paramsText).filter(({ name }) => !unsearchedMembers.has(name))
  // The client's callback URL and secret are not sent to the server.
  if (isAboutEvents(method)) return members.filter(({ name }) => name !== 'delivery')
  if (!namedMethods.has(method)) return members
  const others = members.filter(({ name }) => name !== 'name')
  return others.some(({ name }) => name === 'arguments') ? others : [...others, { name: 'arguments', text: '{}' }]
}

/**
 * Returns the origin of a text of a call. Prompts and resources have no tool (null); tasks and events may come from any
 * tool of the server (undefined).
 */
function originOf (call: GatewayCall, side: CallSide): TextOrigin {
  const { exchange: { method }, provider: server, item } = call
  if (method === 'tools/call') return { side, server, tool: item, call }
  return { side, server, tool: method.startsWith('tasks/') || isAboutEvents(method) ? undefined : null, call }
}

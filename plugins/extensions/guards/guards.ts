import { isDeepStrictEqual } from 'node:util'
import { Refusal, RpcError } from '../../../protocol/errors.ts'
import { streamMethod } from '../../../protocol/events.ts'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { toRpcError } from '../../../protocol/message.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import type { Guard } from '../../../schemas/guards.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { GuardedExchange } from './guarded-exchange.ts'
import { guardsFor, type CallSide } from './rules.ts'
import { ContentRefusal, SearchedCharacters, type TextOrigin, type Screen } from './screen.ts'
import type { GuardWebhooks } from './webhooks.ts'
import { changedParams, objectOf, paramsOf, withoutToken, type Param } from './params.ts'

/** Methods whose params have a name, which the gateway resolves, and arguments, which guards' webhooks judge. */
const called: ReadonlySet<string> = new Set(['tools/call', 'prompts/get'])
/**
 * Members of params that are not searched: made by the server or the gateway, or responses to questions of the server.
 */
const unsearched: ReadonlySet<string> = new Set(['taskId', 'cursor', 'requestState', 'inputResponses'])
/** Members of params that address an object: masking them would address another one. */
const addresses: ReadonlyMap<string, string> = new Map([['uri', 'the URI'], ['ref', '"ref"']])
const isAboutEvents = (method: string): boolean => method.startsWith('events/')
/** The members of params that webhooks judge, by method; for methods in `called`, these are the arguments. */
const judged: Readonly<Record<string, readonly string[]>> =
  { 'resources/read': ['uri'], 'completion/complete': ['ref', 'argument', 'context'] }

/** A message to search: its origin, its owner, and how much of it has been searched. */
interface Message { readonly place: TextOrigin, readonly owner: string, readonly searched: SearchedCharacters }

interface GuardsDeps {
  readonly active: () => readonly Guard[]
  readonly screen: Screen
  readonly judges: GuardWebhooks
}

/** Applies the configured guards to the messages that pass through the gateway. */
export class Guards {
  readonly #deps: GuardsDeps
  readonly #exchanges = new WeakMap<GatewayCall, GuardedExchange>()

  constructor (deps: GuardsDeps) {
    this.#deps = deps
  }

  /** Checks the arguments of a call, and makes its notifications be checked. @throws Refusal */
  onCall (call: GatewayCall): Promise<void> | undefined {
    const place = placeOf(call, 'arguments')
    // A stream stays open, so its events are checked by the guards that are active when they arrive.
    const isScreened = call.exchange.method === streamMethod || this.#onResults(call).length > 0
    const onArguments = guardsFor(this.#deps.active(), 'arguments', place.server, place.tool)
    if (onArguments.length > 0) return this.#checkArguments(call, place, onArguments)
    if (isScreened) this.#replaceExchange(call, {})
    return undefined
  }

  /** Checks a subscription to a resource. Its params are not changed: it is either sent or refused. @throws Refusal */
  async onSubscribe (exchange: GatewayCall['exchange'], server: string, uri: string): Promise<void> {
    const { paramsText, client } = exchange
    const place: TextOrigin = { side: 'arguments', server, tool: null }
    const text = withoutProgressToken(paramsText)
    const searched = new SearchedCharacters()
    for (const guard of guardsFor(this.#deps.active(), 'arguments', server, null)) {
      if (await this.#deps.screen.apply(guard, text, place, client.owner ?? client.id, searched) !== text) {
        throw new Refusal('guard', `The guard "${guard.name}" refuses this call: the params contain what it masks`)
      }
      const asked = `{"uri":${JSON.stringify(uri)}}`
      const answer = await this.#deps.judges.ask(guard, { exchange, provider: server, item: uri }, 'call', asked)
      if (!isSame(answer, asked)) throw otherAddress(guard)
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

  /** Checks a notification that belongs to no request. @returns undefined if it must not be sent */
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

  async #checkArguments (call: GatewayCall, place: TextOrigin, guards: readonly Guard[]): Promise<void> {
    const { method, paramsText } = call.exchange
    const given = searchedMembers(method, paramsText)
    const message = { place, owner: ownerOf(call), searched: new SearchedCharacters() }
    let members = given
    let refusal: Refusal | undefined
    try {
      for (const guard of guards) {
        const found = await this.#searchMembers(guard, method, members, message)
        members = found.members
        // The remaining guards still mask the members for the records.
        refusal ??= found.refusal
        if (!refusal) members = await this.#judge(guard, call, members)
      }
      if (refusal) throw refusal
    } finally {
      // The records of a refused call contain no more than those of other calls.
      const changed = changedParams(given, members)
      this.#replaceExchange(call, Object.fromEntries(changed))
      const uri = changed.get('uri')
      if (uri !== undefined) call.item = JSON.parse(uri.startsWith('"') ? uri : '""') as string
    }
  }

  /**
   * Searches members of params, joined to one text.
   * @returns the members to use; if there is a refusal, those to keep in records
   */
  async #searchMembers (
    guard: Guard, method: string, members: readonly Param[], { place, owner, searched }: Message
  ): Promise<{ members: readonly Param[], refusal?: Refusal }> {
    const text = objectOf(members.map(({ name, text }) => ({ name, text: withoutToken(name, text) })))
    let masked: string
    let refusal: Refusal | undefined
    try {
      masked = await this.#deps.screen.apply(guard, text, place, owner, searched)
    } catch (error) {
      if (!(error instanceof ContentRefusal)) throw error
      refusal = error
      masked = error.masked
    }
    if (masked === text) return { members }
    const parts = paramsOf(masked)
    const found = members.map((given, at): Param => {
      // If the text could not be searched, nothing of it is kept.
      const { name, text } = parts[at] ?? { name: given.name, text: '{}' }
      if (name === given.name && text === withoutToken(name, given.text)) return given
      const token = given.name === '_meta' ? memberOf(given.text, 'progressToken') : undefined
      return { name, text: token === undefined ? text : withMembers(text, { progressToken: token }) }
    })
    for (const [at, given] of members.entries()) {
      // Addresses and subscriptions are not changed; a finding in them refuses the call.
      const address = addresses.get(given.name) ?? (isAboutEvents(method) ? `"${found[at]?.name ?? ''}"` : undefined)
      if (found[at] === given || address === undefined) continue
      refusal ??= new Refusal('guard', `The guard "${guard.name}" refuses this call: ${address} contains what it masks`)
    }
    return { members: found, refusal }
  }

  /** Asks a guard's webhook about members of params. @returns the members to use @throws Refusal */
  async #judge (guard: Guard, call: GatewayCall, members: readonly Param[]): Promise<readonly Param[]> {
    if (guard.webhook === undefined) return members
    const { method } = call.exchange
    const names = judged[method]
    if (!called.has(method) && !names) return members
    const asked = members.filter(({ name }) => names === undefined ? name === 'arguments' : names.includes(name))
    const text = names === undefined ? asked[0]?.text ?? '{}' : objectOf(asked)
    const answer = await this.#deps.judges.ask(guard, call, 'call', text)
    if (answer === text) return members
    return members.map((member) => {
      if (!asked.includes(member)) return member
      const replaced = names === undefined ? answer : memberOf(answer, member.name) ?? 'null'
      if (!addresses.has(member.name)) return { name: member.name, text: replaced }
      if (!isSame(replaced, member.text)) throw otherAddress(guard)
      return member
    })
  }

  async #checkResult (call: GatewayCall, guards: readonly Guard[], result: string): Promise<string> {
    const place = placeOf(call, 'results')
    const searched = new SearchedCharacters()
    let text = result
    for (const guard of guards) {
      text = await this.#deps.screen.apply(guard, text, place, ownerOf(call), searched)
      const held = guard.webhook === undefined ? undefined : outcomeIn(call, text)
      if (held === undefined) continue
      const answer = await this.#deps.judges.ask(guard, call, 'result', held)
      if (answer === held) continue
      const resultType = memberOf(held, 'resultType')
      const result = withMembers(answer, {}, resultType === undefined ? {} : { resultType })
      text = held === text ? answer : withMembers(text, { result })
    }
    await this.#exchanges.get(call)?.sentNotifications
    return text
  }

  async #checkError (call: GatewayCall, guards: readonly Guard[], error: RpcError): Promise<RpcError> {
    const given = error.toText()
    let text = given
    const place = placeOf(call, 'results')
    const searched = new SearchedCharacters()
    for (const guard of guards) text = await this.#deps.screen.apply(guard, text, place, ownerOf(call), searched)
    if (text === given) return error
    const { code, message } = toRpcError(text)
    return new RpcError(code, message, error.reason, text)
  }

  #checkNotification (
    guards: readonly Guard[], paramsText: string, place: TextOrigin, owner: string
  ): string | undefined | Promise<string | undefined> {
    let text: string | Promise<string> = paramsText
    const searched = new SearchedCharacters()
    try {
      for (const guard of guards) {
        const apply = (former: string): string | Promise<string> =>
          this.#deps.screen.apply(guard, former, place, owner, searched)
        text = typeof text === 'string' ? apply(text) : text.then(apply)
      }
    } catch {
      // The refusal has been reported.
      return undefined
    }
    return typeof text === 'string' ? text : text.catch(() => undefined)
  }

  #replaceExchange (call: GatewayCall, members: Readonly<Record<string, string | undefined>>): void {
    const place = placeOf(call, 'results')
    const sent = placeOf(call, 'arguments')
    const owner = ownerOf(call)
    const exchange = new GuardedExchange(call.exchange, members, (paramsText) =>
      this.#checkNotification(this.#onResults(call), paramsText, place, owner), (cancelText) => {
      const { server, tool } = sent
      const guards = guardsFor(this.#deps.active(), 'arguments', server, tool)
      const checked = this.#checkNotification(guards, cancelText, sent, owner)
      return typeof checked === 'string' ? checked : undefined
    })
    this.#exchanges.set(call, exchange)
    call.exchange = exchange
  }
}

/** What a guard's webhook is asked about: a task that has ended holds the result of its tool. */
const outcomeIn = ({ exchange }: GatewayCall, result: string): string | undefined =>
  exchange.method === 'tasks/get' ? memberOf(result, 'result') : result

const isSame = (one: string, other: string): boolean => isDeepStrictEqual(JSON.parse(one), JSON.parse(other))
const otherAddress = ({ name }: Guard): Refusal =>
  new Refusal('guard', `The guard "${name}" refuses this call: its webhook replaced the name or URI of the item`)
const ownerOf = ({ exchange: { client } }: GatewayCall): string => client.owner ?? client.id

/** Returns the members of params to search. */
function searchedMembers (method: string, paramsText: string): readonly Param[] {
  // Ending a subscription is never refused.
  if (method === 'events/unsubscribe') return []
  const members = paramsOf(paramsText).filter(({ name }) => !unsearched.has(name))
  // The client's callback URL and secret are not sent to the server.
  if (isAboutEvents(method)) return members.filter(({ name }) => name !== 'delivery')
  if (!called.has(method)) return members
  const others = members.filter(({ name }) => name !== 'name')
  return others.some(({ name }) => name === 'arguments') ? others : [...others, { name: 'arguments', text: '{}' }]
}

/**
 * Returns the origin of a text. Prompts and resources have no tool (null); tasks and events may come from any tool of
 * the server (undefined).
 */
function placeOf (call: GatewayCall, side: CallSide): TextOrigin {
  const { exchange: { method }, provider: server, item } = call
  if (method === 'tools/call') return { side, server, tool: item, call }
  return { side, server, tool: method.startsWith('tasks/') || isAboutEvents(method) ? undefined : null, call }
}

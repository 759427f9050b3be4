import type { ClientCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { eventText } from '../../../protocol/event-stream.ts'
import { UnattendedExchange, type Client, type Exchange, type RequestHeaders } from '../../../protocol/exchange.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import type { Listener } from '../../../protocol/listener.ts'
import { errorResponseText, notificationText, resultResponseText, type Response } from '../../../protocol/message.ts'
import { metaKeys } from '../../../protocol/modern/envelope.ts'
import type { View } from '../../settings/index.ts'
import type { EventStream } from '../event-stream.ts'
import { resultHead } from './result.ts'
import { gatewayLimits } from '../../gateway/index.ts'
import { downstreamLimits } from '../limits.ts'

/** The filter of a subscription (MCP 2026-07-28, `SubscriptionFilter`). */
export interface SubscriptionFilter {
  readonly toolsListChanged: boolean
  readonly promptsListChanged: boolean
  readonly resourcesListChanged: boolean
  /** Part of the extension `io.modelcontextprotocol/events`. */
  readonly eventsListChanged: boolean
  readonly resourceSubscriptions: readonly string[]
  /** Part of the extension `io.modelcontextprotocol/tasks`. */
  readonly taskIds: readonly string[]
}

const filterMembers = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
  events: 'eventsListChanged'
} as const

/** Parses the filter of a `subscriptions/listen` request. @throws RpcError -32602 */
export function parseSubscriptionFilter ({ notifications }: Readonly<Record<string, unknown>>): SubscriptionFilter {
  const invalid = (sentence: string): RpcError => new RpcError(rpcCode.invalidParams, `Invalid params: ${sentence}`)
  if (!isObject(notifications)) throw invalid('"notifications" must be an object')
  const flags = Object.values(filterMembers).map((name) => {
    const value = notifications[name] ?? false
    if (typeof value !== 'boolean') throw invalid(`notifications.${name} must be true or false`)
    return [name, value] as const
  })
  const texts = (name: string, noun: string, max: number): string[] => {
    const { [name]: given = [] } = notifications
    if (!Array.isArray(given) || !given.every((each): each is string => typeof each === 'string')) {
      throw invalid(`notifications.${name} must be a list of ${noun}`)
    }
    if (given.length > max) throw invalid(`notifications.${name} has more than ${max} ${noun}`)
    return [...new Set(given)]
  }
  return {
    ...Object.fromEntries(flags) as Pick<SubscriptionFilter, typeof filterMembers[keyof typeof filterMembers]>,
    resourceSubscriptions: texts('resourceSubscriptions', 'URIs', gatewayLimits.subscriptionsPerSession),
    taskIds: texts('taskIds', 'ids', downstreamLimits.taskWatch.tasks)
  }
}

let lastSubscriptionNumber = 0

/**
 * An open `subscriptions/listen` stream (MCP 2026-07-28, "Subscriptions"). It represents a client, and is the client's
 * listener for notifications. Up to `downstreamLimits.waitingMessages` notifications wait until the acknowledgement has
 * been sent.
 */
export class Subscription implements Client, Listener<View> {
  readonly id = `listening ${++lastSubscriptionNumber}`
  readonly view: View
  readonly capabilities: ClientCapabilities
  readonly owner: string
  readonly level = undefined
  readonly isFiltered = true
  readonly hasLevelInRequests = true
  readonly headers: RequestHeaders
  /** The client whose upstream links the subscription uses. Requests of the same principal use the client, too. */
  readonly linkOwner: Client
  readonly #idText: string
  readonly #stream: EventStream
  #accepted: SubscriptionFilter | undefined
  /** Messages that arrived before the acknowledgement. */
  #earlyMessages: Array<readonly [method: string, paramsText: string | undefined]> = []
  readonly #taskChanges = new Map<unknown, () => void>()

  constructor (
    idText: string, view: View, linkOwner: Client, owner: string, headers: RequestHeaders, stream: EventStream
  ) {
    this.#idText = idText
    this.view = view
    this.linkOwner = linkOwner
    this.capabilities = linkOwner.capabilities
    this.owner = owner
    this.headers = headers
    this.#stream = stream
  }

  get user (): string { return this.view.principal.user }
  get principalKey (): string { return this.view.principal.key }
  get listener (): Listener<View> { return this }
  headersOf (): RequestHeaders { return this.headers }
  get isOpen (): boolean { return this.#stream.isOpen }

  async ask (): Promise<Response> {
    throw new RpcError(rpcCode.internal, 'The client can receive requests only during its own requests', 'internal')
  }

  /** Creates a request that the gateway makes on behalf of the subscription. */
  createRequest (method: string, params: Record<string, unknown>, address: string): Exchange<View> {
    const { view, headers } = this
    return new UnattendedExchange({ view, client: this, method, params, headers, address, taskForm: 'extension' })
  }

  /** Sends the accepted part of the filter as the first message, and then the messages that arrived before. */
  acknowledge (accepted: SubscriptionFilter): void {
    this.#accepted = accepted
    const notifications: Record<string, unknown> = {}
    for (const name of Object.values(filterMembers)) if (accepted[name]) notifications[name] = true
    if (accepted.resourceSubscriptions.length > 0) notifications.resourceSubscriptions = accepted.resourceSubscriptions
    if (accepted.taskIds.length > 0) notifications.taskIds = accepted.taskIds
    this.#send('notifications/subscriptions/acknowledged', JSON.stringify({ notifications }))
    for (const [method, paramsText] of this.#earlyMessages.splice(0)) this.deliver(method, paramsText)
  }

  /** Calls `run` whenever a server announces a change of a task (MCP 2025-11-25, "Task Status Notification"). */
  onTaskChange (taskId: string, run: () => void): void { this.#taskChanges.set(taskId, run) }

  deliver (method: string, paramsText?: string): void {
    if (method === 'notifications/tasks/status') {
      this.#taskChanges.get(
        parseSmallMember(paramsText ?? '{}', 'taskId')
      )?.()
    } else if (!this.#accepted) {
      if (this.#earlyMessages.length < downstreamLimits.waitingMessages) this.#earlyMessages.push([method, paramsText])
    } else if (this.#isWanted(method, this.#accepted)) this.#send(method, paramsText)
  }

  /** Ends the stream with a result, when the gateway ends the subscription. @param serverInfo as JSON text, if known */
  end (serverInfo: string | undefined): void {
    const result = withMembers(`${resultHead('complete', serverInfo)}}`, {
      _meta: withMembers('{}', { [metaKeys.serverInfo]: serverInfo, [metaKeys.subscriptionId]: this.#idText })
    })
    this.#stream.write(eventText(resultResponseText(this.#idText, result)))
    this.#stream.end()
  }

  /** Ends the stream with an error, before the acknowledgement. @param error by default, an internal error */
  fail (error = new RpcError(rpcCode.internal, 'Internal error', 'internal')): void {
    this.#stream.write(eventText(errorResponseText(this.#idText, error.toText())))
    this.#stream.end()
  }

  #isWanted (method: string, accepted: SubscriptionFilter): boolean {
    switch (method) {
      case 'notifications/tools/list_changed': return accepted.toolsListChanged
      case 'notifications/prompts/list_changed': return accepted.promptsListChanged
      case 'notifications/resources/list_changed': return accepted.resourcesListChanged
      case 'notifications/events/list_changed': return accepted.eventsListChanged
      // Only updates of subscribed resources arrive here.
      case 'notifications/resources/updated': return accepted.resourceSubscriptions.length > 0
      // Only updates of watched tasks arrive here.
      case 'notifications/tasks': return true
      default: return false
    }
  }

  #send (method: string, paramsText = '{}'): void {
    const meta = memberOf(paramsText, '_meta')
    const marked =
      withMembers(meta?.startsWith('{') === true ? meta : '{}', { [metaKeys.subscriptionId]: this.#idText })
    this.#stream.write(eventText(notificationText(method, withMembers(paramsText, { _meta: marked }))))
  }
}

import { listCapabilityOf, type ListKind } from '../../../protocol/lists.ts'
import { RpcError } from '../../../protocol/errors.ts'
import { chargedOwnerOf, type View } from '../../settings/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { Shares } from '../../base/limits/index.ts'
import { EventStream } from '../event-stream.ts'
import type { InboundRequest, LogError, HttpRequestContext } from '../endpoint.ts'
import { omitHeaders } from '../../../protocol/exchange.ts'
import { waitAtMost } from '../../../protocol/wait-at-most.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { parseSubscriptionFilter, Subscription, type SubscriptionFilter } from './subscription.ts'
import { requireTasksExtension } from './tasks.ts'
import { TaskWatch } from './task-watch.ts'
import type { ModernClientPool } from './leases.ts'
import type { ModernRequest } from './request.ts'
import { downstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** The open subscriptions of modern clients. */
export class ClientSubscriptions {
  readonly #gateway: Gateway
  readonly #leases: ModernClientPool
  readonly #logError: LogError
  readonly #open = new Set<Subscription>()
  readonly #shares = new Shares(downstreamLimits.listens, 'open subscriptions')

  constructor (gateway: Gateway, leases: ModernClientPool, logError: LogError) {
    this.#gateway = gateway
    this.#leases = leases
    this.#logError = logError
  }

  get size (): number { return this.#open.size }

  /**
   * Handles `subscriptions/listen`: responds with a stream that stays open.
   * @throws RpcError for an invalid filter, ShareError
   */
  listen (
    { view, raw, address }: InboundRequest, request: ModernRequest, { headers, credentialHeader }: HttpRequestContext
  ): void {
    const filter = parseSubscriptionFilter(request.params)
    if (filter.taskIds.length > 0) requireTasksExtension(request)
    const owner = chargedOwnerOf(view.principal, address)
    const release = this.#shares.take(owner)
    const ownHeaders = credentialHeader === undefined ? headers : omitHeaders(headers, [credentialHeader])
    const stream = new EventStream(raw, {})
    const client = this.#leases.hold(view, address, request.capabilities, request.capabilitiesText, request.logLevel)
    const subscription = new Subscription(request.idText, view, client, owner, ownHeaders, stream)
    this.#open.add(subscription)
    const over = new AbortController()
    stream.onClose(() => {
      over.abort()
      release()
      this.#open.delete(subscription)
      this.#forget(subscription)
      this.#leases.release(client)
    })
    this.#gateway.addListener(subscription, subscription, address)
    this.#accept(subscription, filter, address, over.signal).then(
      (accepted) => { subscription.acknowledge(accepted) },
      (error: unknown) => { subscription.fail(error instanceof RpcError ? error : undefined) }
    ).catch((error: unknown) => { this.#logError(error, 'a subscription failed') })
  }

  /** Ends the subscriptions whose views have lost access. */
  revoke (hasAccess: (view: View) => boolean): void {
    for (const subscription of [...this.#open]) if (!hasAccess(subscription.view)) this.#end(subscription)
  }

  /** Ends the subscriptions that were opened with a credential. @param id the id in `Principal.credential` */
  expire (id: string): void {
    for (const subscription of [...this.#open]) {
      if (subscription.view.principal.credential?.id === id) this.#end(subscription)
    }
  }

  close (): void { for (const subscription of [...this.#open]) this.#end(subscription) }

  #forget (subscription: Subscription): void {
    this.#gateway.removeClient(subscription)
      .catch((error: unknown) => { this.#logError(error, 'a subscription could not be released') })
  }

  #end (subscription: Subscription): void {
    subscription.end(this.#gateway.serverInfo(subscription.view, subscription))
  }

  /**
   * Subscribes to the resources and tasks of a filter.
   * @returns the accepted part of the filter: the kinds of lists that the route has, and the resources and tasks to
   *   which subscribing succeeded in time
   */
  async #accept (
    subscription: Subscription, filter: SubscriptionFilter, address: string, over: AbortSignal
  ): Promise<SubscriptionFilter> {
    const { capabilities } = await this.#gateway.describe(subscription.view, subscription, true)
    const has = (kind: ListKind): boolean => listCapabilityOf(capabilities, kind) !== undefined
    const accepted = new Set<string>()
    const subscribe = async (uri: string): Promise<void> => {
      try {
        await this.#gateway.handle(subscription.createRequest('resources/subscribe', { uri }, address))
        accepted.add(uri)
      } catch (error) {
        // The resource is omitted from the acknowledgement.
        if (!(error instanceof RpcError)) this.#logError(error, 'a resource could not be subscribed to')
      }
    }
    const watched = new Set<string>()
    const watch = async (taskId: string): Promise<void> => {
      const task = new TaskWatch(this.#gateway, subscription, address, taskId)
      try {
        await task.begin()
        watched.add(taskId)
        // Notifications are held back until the acknowledgement is sent.
        task.run(over).catch(() => {})
      } catch (error) {
        // The task is omitted from the acknowledgement.
        if (!(error instanceof RpcError)) this.#logError(error, 'a task could not be subscribed to')
      }
    }
    const subscribing = Promise.all([
      startEach(filter.resourceSubscriptions, subscribe), startEach(filter.taskIds, watch)
    ])
    // If the client has disconnected, some subscriptions may have been made after it was removed: remove it again.
    void subscribing.then(() => { if (!subscription.isOpen) this.#forget(subscription) })
    await waitAtMost(gatewayLimits.newClass, subscribing)
    return {
      toolsListChanged: filter.toolsListChanged && has('tools'),
      promptsListChanged: filter.promptsListChanged && has('prompts'),
      resourcesListChanged: filter.resourcesListChanged && has('resources'),
      eventsListChanged: filter.eventsListChanged && has('events'),
      resourceSubscriptions: filter.resourceSubscriptions.filter((uri) => accepted.has(uri)),
      taskIds: filter.taskIds.filter((id) => watched.has(id))
    }
  }
}

/**
 * Calls an async function for each URI or id without waiting for the previous call, and resolves when all calls have
 * ended. Yields to the event loop between calls, since finding the server of a URI may compare thousands of templates.
 */
async function startEach (ids: readonly string[], begin: (id: string) => Promise<void>): Promise<void> {
  const begun: Array<Promise<void>> = []
  const budget = new LoopBudget()
  for (const id of ids) {
    begun.push(begin(id))
    if (budget.isSpent) await budget.yieldToEventLoop()
  }
  await Promise.all(begun)
}

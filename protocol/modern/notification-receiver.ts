import { rpcCode, RpcError, UpstreamError } from '../errors.ts'
import { isObject, memberOf, withMembers } from '../json.ts'
import { listCapabilityOf } from '../lists.ts'
import { parseRpcError, type Notification, type Response } from '../message.ts'
import type { RpcConnection } from '../peer.ts'
import { reconnectDelays } from '../transports/reconnect.ts'
import { metaKeys } from './envelope.ts'
import type { OutgoingEnvelope } from './outgoing.ts'

/**
 * The lists whose changes servers can announce: the kind of list, and the member of `notifications` that requests the
 * announcements.
 */
const listFilters = [
  ['tools', 'toolsListChanged'], ['prompts', 'promptsListChanged'], ['resources', 'resourcesListChanged'],
  ['events', 'eventsListChanged']
] as const

/** The pause before a stream is reopened grows with consecutive failures, up to this number. */
const maxFailures = 5
/** A stream that was open for longer than this, in ms, does not count as failed when it ends. */
const steadyAfter = 3_000

interface ListeningDeps {
  readonly connection: RpcConnection
  readonly outgoing: OutgoingEnvelope
  readonly capabilities: Readonly<Record<string, unknown>>
  /** Max time for the acknowledgment, in ms. */
  readonly timeout: number
  /** Whether to end a stream with `notifications/cancelled`; false: by closing the stream. */
  readonly notifiesCancel: boolean
  /** Receives the notifications of the stream. */
  readonly onNotification: (notification: Notification) => void
  /** Called when the server has lost the session, or is unreachable and an earlier stream has failed, too. */
  readonly onLost: (error: UpstreamError) => void
}

/** One `subscriptions/listen` request. */
interface ListenStream {
  readonly id: number
  readonly filter: string
  readonly startedAt: number
  /** Resolves with the acknowledgment; rejects if the stream ends before it. */
  readonly acknowledged: Promise<void>
  readonly acknowledge: (notification: Notification) => void
  /** The resources whose updates the server will announce; undefined if it will announce all. */
  acceptedUris?: ReadonlySet<unknown>
}

/**
 * Receives a server's unsolicited notifications with `subscriptions/listen` (MCP 2026-07-28, "Subscriptions"), one
 * stream per connection. When the subscriptions change, a new stream is opened, and the previous one is ended only when
 * the new one is acknowledged, so nothing is missed. A stream that ends is reopened.
 */
export class NotificationReceiver {
  readonly #deps: ListeningDeps
  readonly #lists: Readonly<Record<string, true>>
  readonly #uris = new Set<string>()
  #stream: ListenStream | undefined
  /** The stream that will replace `#stream` when it is acknowledged. */
  #next: ListenStream | undefined
  #opening: { readonly filter: string | undefined, readonly done: Promise<void> } | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #closed = false

  constructor (deps: ListeningDeps) {
    this.#deps = deps
    this.#lists = Object.fromEntries(listFilters.flatMap(([name, member]) => {
      return listCapabilityOf(deps.capabilities, name)?.listChanged === true ? [[member, true]] : []
    }))
  }

  /** Opens the stream, if there is anything to listen to. Resolves when it is open or has failed; never rejects. */
  async open (): Promise<void> { await this.#open().catch(() => {}) }

  /** Subscribes to a resource. @throws RpcError if the server refuses to announce its updates; UpstreamError */
  async add (uri: string): Promise<void> {
    this.#uris.add(uri)
    try {
      await this.#open()
    } catch (error) {
      this.#uris.delete(uri)
      throw error
    }
    if (this.#stream?.acceptedUris?.has(uri) !== false) return
    this.#uris.delete(uri)
    throw new RpcError(rpcCode.methodNotFound, `The server does not notify about changes of ${uri}`, 'upstream')
  }

  remove (uri: string): void {
    if (this.#uris.delete(uri)) void this.open()
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const stream of [this.#next, this.#stream]) if (stream) this.#end(stream)
  }

  /**
   * Handles a notification from the server.
   * @param origin the id of the request on whose stream the notification arrived, if the transport knows it
   * @returns true if it was handled here and must not be passed on
   */
  handle (notification: Notification, origin: number | undefined): boolean {
    const { method, params, paramsText } = notification
    if (method === 'notifications/cancelled') {
      const stream = this.#find(params.requestId)
      if (stream) {
        this.#deps.connection
          .abandon(stream.id, new UpstreamError('broken', 'the server ended the subscription', { isPublic: true }))
      }
      return true
    }
    const { _meta } = params
    const id = isObject(_meta) ? _meta[metaKeys.subscriptionId] : undefined
    if (id === undefined && origin === undefined) return false
    const stream = this.#find(id ?? origin)
    // The notification arrived on a stream that has ended, or on the stream of a call.
    if (!stream) return id !== undefined
    if (method === 'notifications/subscriptions/acknowledged') stream.acknowledge(notification)
    else {
      const meta = withMembers(memberOf(paramsText, '_meta') ?? '{}', { [metaKeys.subscriptionId]: undefined })
      const text = withMembers(paramsText, { _meta: meta === '{}' ? undefined : meta })
      this.#deps.onNotification({ ...notification, paramsText: text })
    }
    return true
  }

  #find (id: unknown): ListenStream | undefined {
    return [this.#next, this.#stream].find((stream) => stream !== undefined && stream.id === Number(id))
  }

  /** The member `notifications` of the params, as JSON text; undefined if there is nothing to listen to. */
  get #filter (): string | undefined {
    const wants = Object.keys(this.#lists).length > 0 || this.#uris.size > 0
    return wants
      ? JSON.stringify({ ...this.#lists, ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }) })
      : undefined
  }

  /**
   * Replaces the stream until it matches the current filter. Concurrent callers wait for the same replacement, and for
   * another one if the filter has changed since.
   * @throws RpcError, UpstreamError
   */
  async #open (): Promise<void> {
    while (!this.#closed && this.#stream?.filter !== this.#filter) {
      const filter = this.#filter
      const opening =
        this.#opening ??= { filter, done: this.#replace(filter).finally(() => { this.#opening = undefined }) }
      await opening.done
      if (opening.filter === this.#filter) return
    }
  }

  async #replace (filter: string | undefined): Promise<void> {
    clearTimeout(this.#timer)
    const former = this.#stream
    if (filter === undefined) {
      this.#stream = undefined
    } else {
      const next = this.#next = this.#begin(filter)
      try {
        await next.acknowledged
      } finally {
        this.#next = undefined
      }
      this.#stream = next
    }
    if (former) this.#end(former)
  }

  #begin (filter: string): ListenStream {
    const { connection, outgoing, timeout } = this.#deps
    const id = connection.nextId
    let acknowledge: ListenStream['acknowledge'] = () => {}
    let refuse = (_error: unknown): void => {}
    const acknowledged = new Promise<void>((resolve, reject) => {
      refuse = reject
      acknowledge = ({ params }) => {
        const given = isObject(params.notifications) ? params.notifications.resourceSubscriptions : undefined
        const isAnswered = isObject(params.notifications) && this.#uris.size > 0
        if (isAnswered) stream.acceptedUris = new Set(Array.isArray(given) ? given as unknown[] : [])
        resolve()
      }
    })
    const timer = setTimeout(() => {
      connection.abandon(id, new UpstreamError('timeout', 'no answer to subscriptions/listen within ' +
        `${timeout / 1_000} s`, { isPublic: true }))
    }, timeout)
    timer.unref()
    const stream: ListenStream = { id, filter, startedAt: Date.now(), acknowledged, acknowledge }
    const params = outgoing.ownParams(`{"notifications":${filter}}`)
    const protocol = outgoing.ownHeaders('subscriptions/listen')
    connection.request('subscriptions/listen', params, undefined, { protocol })
      .then((response) => endError(response), (error: unknown) => error)
      .then((error) => {
        refuse(error)
        this.#onStreamEnd(stream, error)
      }, () => {})
    acknowledged.catch(() => {}).finally(() => { clearTimeout(timer) })
    return stream
  }

  /** Handles the end of a stream, whichever side ended it. */
  #onStreamEnd (stream: ListenStream, error: unknown): void {
    if (this.#closed) return
    const wasOpen = this.#stream === stream
    if (wasOpen) this.#stream = undefined
    // Replaced streams are not reopened. If a replacement fails, the old stream stays, and `#open` throws.
    else if (this.#next !== stream || this.#stream !== undefined) return
    if (error instanceof UpstreamError &&
        (error.fault === 'expired' || (error.fault === 'unreachable' && this.#failures > 0))) {
      this.#deps.onLost(error)
      return
    }
    // A server that does not know the method has nothing to announce.
    if (error instanceof RpcError && error.code === rpcCode.methodNotFound) return
    const wasSteady = wasOpen && Date.now() - stream.startedAt > steadyAfter
    this.#failures = wasSteady ? 0 : Math.min(this.#failures + 1, maxFailures)
    const wait = Math.min(reconnectDelays.delay * 2 ** Math.max(this.#failures - 1, 0), reconnectDelays.longest)
    this.#timer = setTimeout(() => { void this.#reopen() }, wait)
    this.#timer.unref()
  }

  /** Reopens a lost stream. All lists are announced as changed, since changes may have been missed. */
  async #reopen (): Promise<void> {
    await this.open()
    if (!this.#stream) return
    for (const [name, member] of listFilters) {
      if (this.#lists[member] === undefined) continue
      this.#deps.onNotification(
        { kind: 'notification', method: `notifications/${name}/list_changed`, params: {}, paramsText: '{}' }
      )
    }
  }

  #end ({ id }: ListenStream): void {
    const { connection, notifiesCancel } = this.#deps
    if (notifiesCancel) connection.notify('notifications/cancelled', `{"requestId":${id}}`)
    connection.abandon(id, new UpstreamError('closed', 'the subscription is no longer needed'))
  }
}

/** Creates the error for a stream that has ended because the server has answered its request. */
const endError = ({ errorText }: Response): Error =>
  errorText === undefined
    ? new UpstreamError('broken', 'the server ended the subscription', { isPublic: true })
    : parseRpcError(errorText)

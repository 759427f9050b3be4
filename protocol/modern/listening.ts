import { code, RpcError, UpstreamError } from '../errors.ts'
import { isObject, memberOf, withMembers } from '../json.ts'
import { toRpcError, type Notification, type Response } from '../message.ts'
import type { Peer } from '../peer.ts'
import { reconnect } from '../transports/redirect.ts'
import { metaKeys } from './envelope.ts'
import type { Outgoing } from './outgoing.ts'

/** The lists whose changes a server can tell, by their capability, and the member of the filter that asks for them. */
const listFilters =
  [['tools', 'toolsListChanged'], ['prompts', 'promptsListChanged'], ['resources', 'resourcesListChanged']] as const

/** Failures in a row that still lengthen the pause before a stream is opened again. */
const maxFailures = 5
/** A stream that was open longer than this, in ms, does not count as a failure when it ends. */
const steadyAfter = 3_000

interface ListeningDeps {
  readonly peer: Peer
  readonly outgoing: Outgoing
  /** The capabilities of the server. */
  readonly capabilities: Readonly<Record<string, unknown>>
  /** Max time for the acknowledgment, in ms. */
  readonly timeout: number
  /** A stream that nobody reads any more is to be ended by a notification, not by closing it. */
  readonly notifiesCancel: boolean
  /** Passes on what it hears. */
  readonly heard: (notification: Notification) => void
  /** The server could not be reached twice in a row. */
  readonly lost: (error: UpstreamError) => void
}

/** One `subscriptions/listen`. */
interface Stream {
  readonly id: number
  readonly filter: string
  readonly begun: number
  /** Settles with the acknowledgment, or with the end that came before it. */
  readonly acknowledged: Promise<void>
  readonly acknowledge: (notification: Notification) => void
  /** The URIs that the server does tell of; undefined: all. */
  honoured?: ReadonlySet<unknown>
}

/**
 * The unsolicited notifications of a server: `subscriptions/listen` (MCP 2026-07-28, "Subscriptions"), one stream for
 * one connection. What is listened for changes with the subscriptions; then another stream is opened, and the former
 * one ended once that is acknowledged, so that nothing is missed in between. A stream that ends is opened again.
 */
export class Listening {
  readonly #deps: ListeningDeps
  readonly #lists: Readonly<Record<string, true>>
  readonly #uris = new Set<string>()
  #stream: Stream | undefined
  /** The stream that is not acknowledged yet. */
  #next: Stream | undefined
  #opening: { readonly filter: string | undefined, readonly done: Promise<void> } | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #closed = false

  constructor (deps: ListeningDeps) {
    this.#deps = deps
    this.#lists = Object.fromEntries(listFilters.flatMap(([name, member]) => {
      const own = deps.capabilities[name]
      return isObject(own) && own.listChanged === true ? [[member, true]] : []
    }))
  }

  /** Begins to listen for changes of lists. Resolves when the server has acknowledged that; never rejects. */
  async open (): Promise<void> { await this.#open().catch(() => {}) }

  /** @throws RpcError when the server does not tell of this resource; UpstreamError */
  async add (uri: string): Promise<void> {
    this.#uris.add(uri)
    try {
      await this.#open()
    } catch (error) {
      this.#uris.delete(uri)
      throw error
    }
    if (this.#stream?.honoured?.has(uri) !== false) return
    this.#uris.delete(uri)
    throw new RpcError(code.methodNotFound, `The server does not tell of changes of ${uri}`, 'upstream')
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
   * Looks at a notification that came.
   * @param origin the id of the request on whose stream it came, if the transport knows
   * @returns true: it is about a stream, or came on one, and nobody else is to see it
   */
  take (notification: Notification, origin: number | undefined): boolean {
    const { method, params, paramsText } = notification
    if (method === 'notifications/cancelled') {
      const stream = this.#find(params.requestId)
      if (stream) {
        this.#deps.peer
          .abandon(stream.id, new UpstreamError('broken', 'the server ended the subscription', { isPublic: true }))
      }
      return true
    }
    const { _meta } = params
    const id = isObject(_meta) ? _meta[metaKeys.subscriptionId] : undefined
    if (id === undefined && origin === undefined) return false
    const stream = this.#find(id ?? origin)
    // It came on a stream that is ended, or on that of a call.
    if (!stream) return id !== undefined
    if (method === 'notifications/subscriptions/acknowledged') stream.acknowledge(notification)
    else {
      const meta = withMembers(memberOf(paramsText, '_meta') ?? '{}', { [metaKeys.subscriptionId]: undefined })
      const text = withMembers(paramsText, { _meta: meta === '{}' ? undefined : meta })
      this.#deps.heard({ ...notification, paramsText: text })
    }
    return true
  }

  #find (id: unknown): Stream | undefined {
    return [this.#next, this.#stream].find((stream) => stream !== undefined && stream.id === Number(id))
  }

  get #filter (): string | undefined {
    const wants = Object.keys(this.#lists).length > 0 || this.#uris.size > 0
    return wants
      ? JSON.stringify({ ...this.#lists, ...(this.#uris.size > 0 && { resourceSubscriptions: [...this.#uris] }) })
      : undefined
  }

  /**
   * Brings the stream to what is listened for now. Those who change that meanwhile wait for one more.
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

  #begin (filter: string): Stream {
    const { peer, outgoing, timeout } = this.#deps
    const id = peer.nextId
    let acknowledge: Stream['acknowledge'] = () => {}
    let refuse = (_error: unknown): void => {}
    const acknowledged = new Promise<void>((resolve, reject) => {
      refuse = reject
      acknowledge = ({ params }) => {
        const given = isObject(params.notifications) ? params.notifications.resourceSubscriptions : undefined
        const isCut = isObject(params.notifications) && this.#uris.size > 0
        if (isCut) stream.honoured = new Set(Array.isArray(given) ? given as unknown[] : [])
        resolve()
      }
    })
    const timer = setTimeout(() => {
      peer.abandon(id, new UpstreamError('timeout', 'no answer to subscriptions/listen within ' +
        `${timeout / 1_000} s`, { isPublic: true }))
    }, timeout)
    timer.unref()
    const stream: Stream = { id, filter, begun: Date.now(), acknowledged, acknowledge }
    const params = outgoing.ownParams(`{"notifications":${filter}}`)
    peer.request(
      'subscriptions/listen', params, undefined, undefined, undefined, outgoing.ownHeaders('subscriptions/listen')
    )
      .then((response) => ended(response), (error: unknown) => error)
      .then((error) => {
        refuse(error)
        this.#over(stream, error)
      }, () => {})
    acknowledged.then(() => { this.#failures = 0 }, () => {}).finally(() => { clearTimeout(timer) })
    return stream
  }

  /** A stream is over, whoever ended it. */
  #over (stream: Stream, error: unknown): void {
    if (this.#closed) return
    const wasOpen = this.#stream === stream
    if (wasOpen) this.#stream = undefined
    // One that replaces another is opened for somebody who hears of the failure.
    else if (this.#next !== stream || this.#stream !== undefined) return
    if (error instanceof UpstreamError &&
        (error.fault === 'expired' || (error.fault === 'unreachable' && this.#failures > 0))) {
      this.#deps.lost(error)
      return
    }
    // A server that does not know the method has nothing to tell.
    if (error instanceof RpcError && error.code === code.methodNotFound) return
    if (!(wasOpen && Date.now() - stream.begun > steadyAfter)) {
      this.#failures = Math.min(this.#failures + 1, maxFailures)
    }
    const wait = Math.min(reconnect.delay * 2 ** Math.max(this.#failures - 1, 0), reconnect.longest)
    this.#timer = setTimeout(() => { void this.#reopen() }, wait)
    this.#timer.unref()
  }

  /** Opens a lost stream again. Changes in between were missed, so the lists are read again. */
  async #reopen (): Promise<void> {
    await this.open()
    if (!this.#stream) return
    for (const [name, member] of listFilters) {
      if (this.#lists[member] === undefined) continue
      this.#deps.heard(
        { kind: 'notification', method: `notifications/${name}/list_changed`, params: {}, paramsText: '{}' }
      )
    }
  }

  #end ({ id }: Stream): void {
    const { peer, notifiesCancel } = this.#deps
    if (notifiesCancel) peer.notify('notifications/cancelled', `{"requestId":${id}}`)
    peer.abandon(id, new UpstreamError('closed', 'it is not listened to any more'))
  }
}

/** Why a stream ended that has its answer. */
const ended = ({ errorText }: Response): Error =>
  errorText === undefined
    ? new UpstreamError('broken', 'the server ended the subscription', { isPublic: true })
    : toRpcError(errorText)

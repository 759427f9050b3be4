import { eventError, withClientEvent, type EventPresentation } from '../../protocol/events.ts'
import { DerivedExchange, type Exchange } from '../../protocol/exchange.ts'
import { Shares } from '../base/limits/index.ts'
import type { View } from '../settings/index.ts'
import { gatewayLimits } from './limits.ts'

const endReason = 'the subscription has ended'

/** An `events/stream` request as sent to its server. Events get the name and the cursors that the client knows. */
export class EventsStreamExchange extends DerivedExchange<View> {
  readonly #presentation: EventPresentation
  readonly #onEnd: Array<(reason: string) => void> = []
  #isTerminated = false

  constructor (exchange: Exchange<View>, presentation: EventPresentation) {
    super(exchange, exchange)
    this.#presentation = presentation
  }

  /** Whether the gateway has ended the subscription. */
  get isTerminated (): boolean { return this.#isTerminated }

  override notify (method: string, paramsText: string): void {
    if (!this.#isTerminated) super.notify(method, withClientEvent(paramsText, this.#presentation))
  }

  override onCancel (run: (reason: string) => void): void {
    // The access may end while hooks run, before the request is sent.
    if (this.#isTerminated) {
      run(endReason)
      return
    }
    this.#onEnd.push(run)
    super.onCancel(run)
  }

  /** Ends the subscription: notifies the client, and cancels the request. @param errorText the reason, as JSON text */
  terminate (errorText: string): void {
    if (this.#isTerminated) return
    super.notify('notifications/events/terminated', `{"error":${errorText}}`)
    this.#isTerminated = true
    for (const run of this.#onEnd.splice(0)) run(endReason)
  }
}

/** An open event stream. `isShown`: tells whether the stream's view still shows the event type. */
interface OpenStream { readonly stream: EventsStreamExchange, readonly isShown: () => boolean }

/** The open event streams of all clients. */
export class OpenEventsStreams {
  readonly #open = new Set<OpenStream>()
  readonly #shares = new Shares(gatewayLimits.eventStreams, 'open event streams')

  /**
   * Sends the request of a stream, and tracks the stream until the request ends.
   * @param isShown tells whether the stream's view still shows the event type
   * @returns the result as JSON text; `{}` if the gateway has ended the stream
   * @throws ShareError
   */
  async run (stream: EventsStreamExchange, isShown: () => boolean, send: () => Promise<string>): Promise<string> {
    const release = this.#shares.take(stream.client.owner ?? stream.client.id)
    const open = { stream, isShown }
    this.#open.add(open)
    try {
      return await send()
    } catch (error) {
      if (!stream.isTerminated) throw error
      return '{}'
    } finally {
      this.#open.delete(open)
      release()
    }
  }

  /** Ends the streams of views without access, and those of event types that their view no longer shows. */
  revoke (hasAccess: (view: View) => boolean): void {
    for (const { stream, isShown } of [...this.#open]) {
      if (!hasAccess(stream.view)) stream.terminate(accessRevokedError.toText())
      else if (!isShown()) stream.terminate(eventError('notFound', { kind: 'event' }).toText())
    }
  }
}

/** The error for a subscription whose principal has lost access (SEP-3415, "Subscription Termination"). */
export const accessRevokedError = eventError('forbidden', { reason: 'Access revoked' })

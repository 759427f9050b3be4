import { DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { withMembers } from '../../../protocol/json.ts'
import type { View } from '../../settings/index.ts'

/** The params of a notification as JSON text, after the guards were applied; undefined: the notification is dropped. */
type ScreenedParams = string | undefined

/** An exchange with the params that guards allow. Guards also screen its notifications and its cancellation. */
export class GuardedExchange extends DerivedExchange<View> {
  readonly #screen: (paramsText: string) => Promise<ScreenedParams> | ScreenedParams
  readonly #screenCancel: (paramsText: string) => string | undefined
  readonly #hasChanges: boolean
  /** Settles when the notifications that are being screened have been sent or dropped; undefined if there are none. */
  #waiting: Promise<void> | undefined

  /**
   * @param members the members of params to replace, as JSON text by name; undefined removes a member
   * @param screen screens the params of a notification to the client
   * @param screenCancel screens a JSON text: the params of the client's cancellation, or its reason; returns undefined
   *   if the text must not be forwarded
   */
  constructor (
    from: Exchange<View>, members: Readonly<Record<string, string | undefined>>,
    screen: (paramsText: string) => Promise<ScreenedParams> | ScreenedParams,
    screenCancel: (paramsText: string) => string | undefined
  ) {
    const { view, params, paramsText } = from
    const entries = Object.entries(members)
    const hasChanges = entries.length > 0
    const changed = hasChanges ? withMembers(paramsText, members) : paramsText
    super(from, {
      view,
      params: hasChanges ? JSON.parse(changed) as typeof params : params,
      paramsText: changed
    })
    this.#screen = screen
    this.#screenCancel = screenCancel
    this.#hasChanges = hasChanges
  }

  /** Undefined if params were changed: then the headers for the server are created from the changed arguments. */
  override get paramHeaders (): Exchange['paramHeaders'] { return this.#hasChanges ? undefined : super.paramHeaders }

  override get cancelParams (): string | undefined {
    const text = super.cancelParams
    return text === undefined ? undefined : this.#screenCancel(text) ?? '{}'
  }

  override get cancelled (): string | undefined {
    const reason = super.cancelled
    return reason === undefined ? undefined : this.#reason(reason)
  }

  override onCancel (run: (reason: string) => void): void { super.onCancel((reason) => { run(this.#reason(reason)) }) }

  #reason (reason: string): string {
    const text = this.#screenCancel(JSON.stringify(reason))
    return text === undefined ? 'the client cancelled the request' : JSON.parse(text) as string
  }

  /** Settles when the notifications so far have been sent or dropped; undefined if none is being screened. */
  get whenNotificationsSent (): Promise<void> | undefined { return this.#waiting }

  override notify (method: string, paramsText: string): void {
    const send = (text: ScreenedParams): void => { if (text !== undefined) super.notify(method, text) }
    // A notification waits for the previous ones, so that they keep their order.
    const screened = this.#waiting?.then(async () => await this.#screen(paramsText)) ?? this.#screen(paramsText)
    if (!(screened instanceof Promise)) { send(screened); return }
    const waiting = screened.then(send, () => {}).finally(() => {
      if (this.#waiting === waiting) this.#waiting = undefined
    })
    this.#waiting = waiting
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { code, RpcError } from '../../../protocol/errors.ts'
import { smallMemberOf, withMembers } from '../../../protocol/json.ts'
import { terminalStates } from '../../../protocol/task-shapes.ts'
import type { Gateway } from '../../gateway/index.ts'
import { downstreamLimits } from '../limits.ts'
import { SubscriptionRequest, type Subscription } from './subscription.ts'

/**
 * Tells a subscription of each change of a task, as `tasks/get` shows it, until the task ends. The task is asked for
 * when a server of 2025-11-25 announces a change, which it need not do, and at the interval that its server states.
 */
export class TaskWatch {
  readonly taskId: string
  readonly #gateway: Gateway
  readonly #subscription: Subscription
  readonly #address: string
  #state = ''
  /** Ends the current pause. */
  #wake = (): void => {}
  /** Whether a change was announced since the task was asked for. */
  #hasChanged = false

  constructor (gateway: Gateway, subscription: Subscription, address: string, taskId: string) {
    this.#gateway = gateway
    this.#subscription = subscription
    this.#address = address
    this.taskId = taskId
    subscription.onTaskChange(taskId, () => { this.#hasChanged = true; this.#wake() })
  }

  /** Reads the task for the first time. @throws RpcError when the client has no such task */
  async begin (): Promise<void> { this.#state = await this.#read() }

  /** Tells of the task, and of its changes until it ends or the subscription is over. */
  async run (signal: AbortSignal): Promise<void> {
    for (let told = ''; !signal.aborted;) {
      if (this.#state !== told) this.#subscription.deliver('notifications/tasks', told = this.#state)
      if (terminalStates.has(smallMemberOf(told, 'status'))) return
      await this.#pause(signal)
      try {
        this.#state = await this.#read()
      } catch (error) {
        // The task is gone. Other errors may pass.
        if (!(error instanceof RpcError) || error.code === code.invalidParams) throw error
      }
    }
  }

  /** Waits for an announcement, for the interval of the task at most. @throws when the subscription is over */
  async #pause (signal: AbortSignal): Promise<void> {
    if (this.#hasChanged) return
    const over = new AbortController()
    const announced = new Promise<void>((resolve) => { this.#wake = resolve })
    const waited = sleep(this.#interval, undefined, { signal: AbortSignal.any([signal, over.signal]), ref: false })
    waited.catch(() => {})
    try {
      await Promise.race([announced, waited])
    } finally {
      over.abort()
    }
  }

  get #interval (): number {
    const { least, most, usual } = downstreamLimits.taskWatch
    const wanted = smallMemberOf(this.#state, 'pollIntervalMs')
    return typeof wanted === 'number' ? Math.min(Math.max(wanted, least), most) : usual
  }

  async #read (): Promise<string> {
    this.#hasChanged = false
    const request = new SubscriptionRequest(this.#subscription, 'tasks/get', { taskId: this.taskId }, this.#address)
    return withMembers(String(await this.#gateway.handle(request)), { resultType: undefined })
  }
}

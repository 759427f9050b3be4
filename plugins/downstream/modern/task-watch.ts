import { setTimeout as sleep } from 'node:timers/promises'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { parseSmallMember, withMembers } from '../../../protocol/json.ts'
import { terminalStates } from '../../../protocol/task-shapes.ts'
import type { Gateway } from '../../gateway/index.ts'
import { downstreamLimits } from '../limits.ts'
import type { Subscription } from './subscription.ts'

/**
 * Notifies a subscription of the changes of a task, as `tasks/get` returns them, until the task ends. The task is read
 * at the poll interval that its server states, and when the server announces a change, which servers need not do (MCP
 * 2025-11-25).
 */
export class TaskWatch {
  readonly taskId: string
  readonly #gateway: Gateway
  readonly #subscription: Subscription
  readonly #address: string
  /** The last result of `tasks/get`, as JSON text. */
  #state = ''
  /** Ends the current wait in `#pause`. */
  #wake = (): void => {}
  /** Whether a change was announced since the task was last read. */
  #hasChanged = false

  constructor (gateway: Gateway, subscription: Subscription, address: string, taskId: string) {
    this.#gateway = gateway
    this.#subscription = subscription
    this.#address = address
    this.taskId = taskId
    subscription.onTaskChange(taskId, () => { this.#hasChanged = true; this.#wake() })
  }

  /** Reads the task for the first time. @throws RpcError, for example if the client has no such task */
  async begin (): Promise<void> { this.#state = await this.#read() }

  /**
   * Sends the state of the task, and then each change, until the task or the subscription ends.
   * @param signal aborts when the subscription ends
   * @throws if the task no longer exists, or the subscription has ended
   */
  async run (signal: AbortSignal): Promise<void> {
    for (let sent = ''; !signal.aborted;) {
      if (this.#state !== sent) this.#subscription.deliver('notifications/tasks', sent = this.#state)
      if (terminalStates.has(parseSmallMember(sent, 'status'))) return
      await this.#pause(signal)
      try {
        this.#state = await this.#read()
      } catch (error) {
        // The task no longer exists. Other errors may be temporary.
        if (!(error instanceof RpcError) || error.code === rpcCode.invalidParams) throw error
      }
    }
  }

  /**
   * Waits for the shortest poll interval (`taskWatch.least`), and then until a change is announced, in all at most for
   * the task's poll interval.
   * @throws if the subscription ends
   */
  async #pause (signal: AbortSignal): Promise<void> {
    const { least } = downstreamLimits.taskWatch
    // A server may announce a change in answer to each `tasks/get`.
    await sleep(least, undefined, { signal, ref: false })
    if (this.#hasChanged) return
    const over = new AbortController()
    const announced = new Promise<void>((resolve) => { this.#wake = resolve })
    const ended = AbortSignal.any([signal, over.signal])
    const waited = sleep(this.#interval - least, undefined, { signal: ended, ref: false })
    waited.catch(() => {})
    try {
      await Promise.race([announced, waited])
    } finally {
      over.abort()
    }
  }

  get #interval (): number {
    const { least, most, usual } = downstreamLimits.taskWatch
    const stated = parseSmallMember(this.#state, 'pollIntervalMs')
    return typeof stated === 'number' ? Math.min(Math.max(stated, least), most) : usual
  }

  async #read (): Promise<string> {
    this.#hasChanged = false
    const request = this.#subscription.createRequest('tasks/get', { taskId: this.taskId }, this.#address)
    return withMembers(String(await this.#gateway.handle(request)), { resultType: undefined })
  }
}

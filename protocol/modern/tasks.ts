import { setTimeout as sleep } from 'node:timers/promises'
import type { Call, NextStep, ParamChanges } from '../call.ts'
import { hasTasksExtension, tasksExtension } from '../capabilities.ts'
import { rpcCode, type RpcError } from '../errors.ts'
import { DerivedExchange, type Exchange } from '../exchange.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from '../json.ts'
import type { Response } from '../message.ts'
import type { RpcConnection } from '../peer.ts'
import { withRelatedTask } from '../task-ids.ts'
import { terminalStates, toLegacyTask, toLegacyCreateTaskResult } from '../task-shapes.ts'
import { modernErrorCode } from './envelope.ts'
import { toLegacyToolResult } from './for-legacy-clients.ts'
import type { InputRounds } from './input-rounds.ts'
import type { OutgoingEnvelope } from './outgoing.ts'

/** The default interval at which a task is polled, and bounds for the interval that the server requests, in ms. */
const interval = { usual: 1_000, least: 20, most: 30_000 }

/** Removes `task` from the changes to a call's params: in this era, the server decides whether it creates a task. */
export const withoutTask = ({ task: _, ...others }: ParamChanges): ParamChanges => others

/** A 2025-11-25 client's `tasks/result` request. The extension has no such method, so the task is polled instead. */
class TaskResultExchange extends DerivedExchange<unknown> {}

/** A task whose result is awaited. */
interface AwaitedTask {
  readonly id: string
  /** Whether the client does not know of the task. Such a task is cancelled if its call ends without a response. */
  readonly isHidden: boolean
  readonly ends: AbortController
}

interface ModernServerTasksDeps {
  readonly connection: RpcConnection
  readonly outgoing: OutgoingEnvelope
  readonly rounds: InputRounds
  /** Max time for one request about a task, in ms. */
  readonly timeout: number
}

/**
 * Serves a server's tasks (extension `io.modelcontextprotocol/tasks`) to clients without the extension: in the form of
 * 2025-11-25, or as results of their calls.
 */
export class ModernServerTasks {
  readonly #deps: ModernServerTasksDeps
  /** Requests that the server refused without the extension, and that are sent again with the extension declared. */
  readonly #repeated = new WeakSet<Exchange>()
  readonly #awaited = new Map<Call, AwaitedTask>()

  constructor (deps: ModernServerTasksDeps) {
    this.#deps = deps
  }

  /** Whether a request declares the extension. */
  isDeclaredFor (exchange: Exchange): boolean {
    return exchange.taskForm !== undefined || this.#repeated.has(exchange)
  }

  /** Converts a request to the form of this era. */
  toModernRequest (exchange: Exchange): Exchange {
    if (exchange.taskForm !== 'parameter') return exchange
    const { view, params, paramsText, method } = exchange
    if (method === 'tasks/result') {
      return new TaskResultExchange(exchange, { view, params, paramsText, method: 'tasks/get' })
    }
    const { task, ...rest } = params
    if (task === undefined) return exchange
    const restText = withMembers(paramsText, { task: undefined })
    return new DerivedExchange(exchange, { view, params: rest, paramsText: restText })
  }

  /**
   * Whether a call must be sent again with the extension declared, since the server refused it only for lack of the
   * extension. Marks the call as declaring the extension. A modern client gets the error instead.
   */
  needsExtension ({ exchange, method }: Call, { code: number }: RpcError, errorText: string): boolean {
    if (number !== modernErrorCode.missingCapability || method !== 'tools/call') return false
    if (!exchange || exchange.canSuspend) return false
    const required = parseSmallMember(memberOf(errorText, 'data') ?? '{}', 'requiredCapabilities')
    const needs = isObject(required) && Object.keys(required).length === 1 && hasTasksExtension(required) &&
      Object.keys(Object(required.extensions) as object).every((name) => name === tasksExtension)
    if (!needs || this.isDeclaredFor(exchange)) return false
    this.#repeated.add(exchange)
    return true
  }

  /**
   * Handles the result of a request that declared the extension.
   * @returns undefined if the response, which may have been changed, ends the call
   */
  onResult (call: Call, response: Response, text: string): Promise<NextStep> | undefined {
    const { exchange, method } = call
    const form = exchange.taskForm
    if (exchange === undefined || form === 'extension') return undefined
    if (method === 'tools/call') {
      if (!isTask(text)) return undefined
      if (form === undefined) return this.#await(call, text, true)
      response.resultText = toLegacyCreateTaskResult(text)
    } else if (exchange instanceof TaskResultExchange) return this.#await(call, text, false)
    else if (method === 'tasks/get') response.resultText = toLegacyTask(text)
    else if (method === 'tasks/cancel') return this.#afterCancel(call)
    return undefined
  }

  /** Stops polling the task of an ended call. If there was no response, a task unknown to the client is cancelled. */
  end (call: Call, response: Response | undefined): void {
    const task = this.#awaited.get(call)
    if (!task) return
    this.#awaited.delete(call)
    task.ends.abort('the call has ended')
    if (task.isHidden && response === undefined) this.#request(call, 'tasks/cancel', task.id).catch(() => {})
  }

  /** Polls a task until it ends, and sends its questions to the client. @param text the task, as JSON text */
  async #await (call: Call, text: string, isHidden: boolean): Promise<NextStep> {
    const id = parseSmallMember(text, 'taskId')
    if (typeof id !== 'string') return { response: failure('The server started a task without an id') }
    const awaited: AwaitedTask = { id, isHidden, ends: new AbortController() }
    this.#awaited.set(call, awaited)
    const answered = new Set<string>()
    // The task in the answer to the call has no outcome yet.
    let task = isHidden ? await this.#next(call, awaited, text) : text
    while (!terminalStates.has(parseSmallMember(task, 'status'))) {
      const asked = memberOf(task, 'inputRequests')
      const answers = asked === undefined
        ? undefined
        : await this.#deps.rounds.answerTask(call, asked, answered, awaited.ends.signal, isHidden ? undefined : id)
      if (answers !== undefined) await this.#request(call, 'tasks/update', id, { inputResponses: answers })
      task = await this.#next(call, awaited, task)
    }
    return { response: outcomeOf(call, task, isHidden ? undefined : id) }
  }

  /** Waits for the poll interval, then reads the task. If the task's state has changed, restarts the call's timeout. */
  async #next (call: Call, { id, ends: { signal } }: AwaitedTask, before: string): Promise<string> {
    const wanted = parseSmallMember(before, 'pollIntervalMs')
    const { usual, least, most } = interval
    const wait = typeof wanted === 'number' ? Math.min(Math.max(wanted, least), most) : usual
    await sleep(wait, undefined, { signal, ref: false })
    const task = await this.#request(call, 'tasks/get', id)
    if (stateOf(task) !== stateOf(before)) call.restartTimeout()
    return task
  }

  /** Creates the answer to a 2025-11-25 client's `tasks/cancel`: the task, or an error if it completed or failed. */
  async #afterCancel (call: Call): Promise<NextStep> {
    const task = await this.#request(call, 'tasks/get', String(call.params.taskId))
    const status = parseSmallMember(task, 'status')
    return {
      response: status === 'completed' || status === 'failed'
        ? failure(`Cannot cancel a task that is ${status}`, rpcCode.invalidParams)
        : answer(toLegacyTask(task))
    }
  }

  /** Sends one of the gateway's own requests about the task of a call. @returns the text of its result */
  async #request (
    { headers, client }: Call, method: string, id: string, more: Readonly<Record<string, string>> = {}
  ): Promise<string> {
    const { connection, outgoing, timeout } = this.#deps
    const params = withMembers(JSON.stringify({ taskId: id }), more)
    return await connection.requestResult(
      method, outgoing.ownParams(params, undefined, true), timeout,
      { headers, owner: client.owner, protocol: outgoing.ownHeaders(method, id) }
    )
  }
}

const isTask = (text: string): boolean => text.includes('"task"') && memberOf(text, 'resultType') === '"task"'

const stateOf = (task: string): string =>
  ['status', 'statusMessage', 'lastUpdatedAt'].map((name) => memberOf(task, name)).join()

const answer = (resultText: string): Response => ({ kind: 'response', id: null, resultText })
const failure = (message: string, number: number = rpcCode.internal): Response =>
  ({ kind: 'response', id: null, errorText: JSON.stringify({ code: number, message }) })

/**
 * Converts the outcome of a task to the answer to its call.
 * @param relatedTask the task's id, if the client knows of the task
 */
function outcomeOf ({ client, exchange }: Call, task: string, relatedTask: string | undefined): Response {
  const status = parseSmallMember(task, 'status')
  if (status === 'cancelled') return failure('The task was cancelled')
  if (status === 'failed') {
    const errorText = memberOf(task, 'error')
    return errorText === undefined
      ? failure('The task failed')
      : { kind: 'response', id: null, errorText }
  }
  const result = withMembers(memberOf(task, 'result') ?? '{"content":[]}', { resultType: undefined })
  const own = exchange.canSuspend || client.listener === undefined ? result : toLegacyToolResult(result)
  return answer(relatedTask === undefined ? own : withRelatedTask(own, relatedTask))
}

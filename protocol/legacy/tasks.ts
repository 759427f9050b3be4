import type { CallOptions, Deadlines } from '../call.ts'
import { UpstreamError } from '../errors.ts'
import { DerivedExchange, type Exchange, type Question } from '../exchange.ts'
import { isObject, memberOf, smallMemberOf, withMembers } from '../json.ts'
import type { Response } from '../message.ts'
import { Table } from '../table.ts'
import { withoutRelatedTask } from '../task-ids.ts'
import { terminalStates, toModernTask, toModernTaskResult } from '../task-shapes.ts'
import { HeldTask } from './held-task.ts'

type Options = Omit<CallOptions, 'over'>

/**
 * Max tasks whose results are awaited for polling clients on one connection; beyond: the oldest wait of the owner that
 * has most ends. Each is awaited for an hour: a question may come at any time, and the next `tasks/get` waits again.
 */
const maxHeld = 200
const heldDeadlines: Deadlines = { timeout: 3_600_000, resetTimeoutOnProgress: false, maxTotalTimeout: undefined }

/** The `tasks/result` of a client that knows no tasks: to it, all that belongs to the task belongs to its call. */
class HiddenTaskExchange extends DerivedExchange<unknown> {
  override notify (method: string, paramsText: string): void { super.notify(method, withoutRelatedTask(paramsText)) }

  override async ask (question: Question): Promise<Response> {
    const paramsText = withoutRelatedTask(question.paramsText)
    return await super.ask({ ...question, paramsText, params: JSON.parse(paramsText) as Record<string, unknown> })
  }
}

interface LegacyTasksDeps {
  /** Sends a request as it is. @throws UpstreamError when there is no answer */
  readonly send: (exchange: Exchange, options: Options) => Promise<Response>
  /** Sends the gateway's own request. */
  readonly request: (method: string, paramsText: string) => Promise<string>
  /** The progress token of the next request. */
  readonly nextToken: () => number
}

interface Held {
  readonly task: HeldTask
  /** The owner that it counts for. */
  readonly owner: string
  readonly response: Promise<Response>
}

/**
 * The tasks of a server of 2025-11-25 for clients that do not use its form: those of the extension
 * `io.modelcontextprotocol/tasks`, and those that wait for the results of their calls.
 */
export class LegacyTasks {
  readonly #deps: LegacyTasksDeps
  readonly #held = new Map<string, Held>()
  /** The waits for hidden tasks, by the progress token of the call that began each. */
  readonly #waitingExchanges = new Table<number, Exchange>()

  constructor (deps: LegacyTasksDeps) {
    this.#deps = deps
  }

  /** Serves a request in another form than the server's. @returns undefined for a request that is sent as it is */
  serve (exchange: Exchange, options: Options): Promise<Response> | undefined {
    const { method, params: { task } } = exchange
    if (method === 'tools/call') {
      const { task: wanted } = options.changes
      if ((wanted === undefined && task === undefined) || exchange.taskForm === 'parameter') return undefined
      return wanted === undefined ? this.#deps.send(withoutTask(exchange), options) : this.#run(exchange, options)
    }
    if (exchange.taskForm !== 'extension') return undefined
    switch (method) {
      case 'tasks/get': return this.#get(exchange, options)
      case 'tasks/update': return this.#update(exchange, options)
      case 'tasks/cancel': return this.#cancel(exchange, options)
      default: return undefined
    }
  }

  /** The exchange that waits for the task that a progress token belongs to. */
  waitOf (token: number): Exchange | undefined { return this.#waitingExchanges.get(token) }

  /** Runs a tool as a task. */
  async #run (exchange: Exchange, options: Options): Promise<Response> {
    const { view, params, paramsText } = exchange
    const { task: wanted = '{}', ...changes } = options.changes
    const begin = new DerivedExchange(exchange, {
      view, params: { ...params, task: {} }, paramsText: withMembers(paramsText, { task: wanted })
    })
    const token = this.#deps.nextToken()
    const started = Date.now()
    const response = await this.#deps.send(begin, { ...options, changes })
    const { resultText: text = '{}' } = response
    const task = memberOf(text, 'task')
    const id = task === undefined ? undefined : smallMemberOf(task, 'taskId')
    // The server may run it at once.
    if (task === undefined || typeof id !== 'string') return response
    const left = { ...options, changes: {}, deadlines: remainingDeadlines(options.deadlines, Date.now() - started) }
    if (exchange.taskForm !== 'extension') return await this.#wait(exchange, left, id, token)
    this.#hold(exchange, left, id)
    return { ...response, resultText: toModernTaskResult(text, task) }
  }

  /** The result of a task, for a client that does not know of it. The task ends with the call. */
  async #wait (exchange: Exchange, options: Options, id: string, token: number): Promise<Response> {
    const { _meta: meta } = exchange.params
    const progressToken = isObject(meta) ? meta.progressToken : undefined
    const params = { taskId: id, ...(progressToken !== undefined && { _meta: { progressToken } }) }
    const waiting = new HiddenTaskExchange(exchange, {
      view: exchange.view, params, paramsText: JSON.stringify(params), method: 'tasks/result'
    })
    this.#waitingExchanges.set(token, waiting)
    try {
      const response = await this.#deps.send(waiting, options)
      const { resultText } = response
      return resultText === undefined ? response : { ...response, resultText: withoutRelatedTask(resultText) }
    } catch (error) {
      this.#deps.request('tasks/cancel', JSON.stringify({ taskId: id })).catch(() => {})
      // The task has begun, so the call must not be repeated.
      throw error instanceof UpstreamError && error.didNotRun
        ? new UpstreamError('broken', error.messageForClients, { isPublic: true })
        : error
    } finally {
      this.#waitingExchanges.take(token)
    }
  }

  /** `tasks/get` of the extension, which has the outcome and the open questions. */
  async #get (exchange: Exchange, options: Options): Promise<Response> {
    const id = String(exchange.params.taskId)
    const response = await this.#deps.send(exchange, options)
    const { resultText } = response
    if (resultText === undefined) { this.#end(id); return response }
    const status = smallMemberOf(resultText, 'status')
    const told = (changes: Readonly<Record<string, string>>): Response =>
      ({ ...response, resultText: withMembers(toModernTask(resultText), changes) })
    if (status === 'cancelled') { this.#end(id); return told({}) }
    const held = this.#held.get(id) ?? this.#hold(exchange, options, id)
    if (terminalStates.has(status)) {
      const outcome = await held.response
      // It is read again for each client that asks.
      this.#end(id)
      return outcome.errorText === undefined
        ? told({ status: '"completed"', result: completeResult(outcome.resultText ?? '{}') })
        : told({ status: '"failed"', error: outcome.errorText })
    }
    if (status === 'input_required') await held.task.firstQuestion()
    const { inputRequests } = held.task
    return inputRequests === undefined
      ? told({ status: '"working"' })
      : told({ status: '"input_required"', inputRequests })
  }

  async #update (exchange: Exchange, options: Options): Promise<Response> {
    const id = String(exchange.params.taskId)
    const held = this.#held.get(id)
    if (!held) {
      const { errorText } = await this.#deps.send(aboutTask(exchange, 'tasks/get', id), options)
      if (errorText !== undefined) return { kind: 'response', id: null, errorText }
    }
    held?.task.answer(memberOf(exchange.paramsText, 'inputResponses') ?? '{}')
    return emptyResponse()
  }

  /** `tasks/cancel` of the extension, which may come too late. */
  async #cancel (exchange: Exchange, options: Options): Promise<Response> {
    const id = String(exchange.params.taskId)
    const response = await this.#deps.send(exchange, options)
    this.#end(id)
    if (response.errorText === undefined) return emptyResponse()
    const { resultText = '{}' } = await this.#deps.send(aboutTask(exchange, 'tasks/get', id), options)
    return terminalStates.has(smallMemberOf(resultText, 'status')) ? emptyResponse() : response
  }

  /** Waits for the result of a task in the background. */
  #hold (exchange: Exchange, options: Options, id: string): Held {
    const { client } = exchange
    const task = new HeldTask(exchange, id)
    const held: Held = {
      task,
      owner: client.owner ?? client.id,
      response: this.#deps.send(task, { ...options, changes: {}, deadlines: heldDeadlines })
    }
    this.#held.set(id, held)
    if (this.#held.size > maxHeld) this.#end(oldestOfLargest(this.#held))
    // Without an answer, the next `tasks/get` waits again.
    held.response.catch(() => { if (this.#held.get(id) === held) this.#held.delete(id) })
    return held
  }

  #end (id: string): void {
    this.#held.get(id)?.task.end('the result is not awaited any more')
    this.#held.delete(id)
  }
}

/** The oldest wait of the owner that has most of them, so that no owner ends the waits of others. */
function oldestOfLargest (held: ReadonlyMap<string, Held>): string {
  const idsOf = new Map<string, string[]>()
  for (const [id, { owner }] of held) {
    const ids = idsOf.get(owner)
    if (ids) ids.push(id)
    else idsOf.set(owner, [id])
  }
  let largest: string[] = []
  for (const ids of idsOf.values()) if (ids.length > largest.length) largest = ids
  return largest[0] ?? ''
}

const emptyResponse = (): Response => ({ kind: 'response', id: null, resultText: '{}' })

/** Converts the result of a legacy task to a complete result of the modern era. */
const completeResult = (text: string): string => withMembers(withoutRelatedTask(text), { resultType: '"complete"' })

/** A call without a `task` that its client cannot mean: its era has no such member. */
function withoutTask (exchange: Exchange): Exchange {
  const { view, params: { task: _, ...params }, paramsText } = exchange
  return new DerivedExchange(exchange, { view, params, paramsText: withMembers(paramsText, { task: undefined }) })
}

/** Another request about the task of a request. */
function aboutTask (exchange: Exchange, method: string, taskId: string): Exchange {
  const params = { taskId }
  return new DerivedExchange(exchange, { view: exchange.view, params, paramsText: JSON.stringify(params), method })
}

/** The deadlines of a call after a part of its time. @param elapsed in ms */
const remainingDeadlines = ({ maxTotalTimeout, ...others }: Deadlines, elapsed: number): Deadlines => ({
  ...others, maxTotalTimeout: maxTotalTimeout === undefined ? undefined : Math.max(maxTotalTimeout - elapsed, 0)
})

import type { CallOptions, Deadlines } from '../call.ts'
import { UpstreamError } from '../errors.ts'
import { DerivedExchange, type Exchange, type Question } from '../exchange.ts'
import { pushTo } from '../grouping.ts'
import { isObject, memberOf, parseSmallMember, withMembers } from '../json.ts'
import type { Response } from '../message.ts'
import { RequestTable } from '../table.ts'
import { withoutRelatedTask } from '../task-ids.ts'
import { terminalStates, toModernTask, toModernCreateTaskResult } from '../task-shapes.ts'
import { HeldTaskExchange } from './held-task.ts'

type Options = Omit<CallOptions, 'onEnd'>

/**
 * Max tasks per connection whose results are awaited for polling clients; beyond that, the owner with the most
 * waits loses its oldest one. A wait lasts up to an hour, since a question may come at any time; the next `tasks/get`
 * starts another.
 */
const maxHeld = 200
const heldDeadlines: Deadlines = { timeout: 3_600_000, resetTimeoutOnProgress: false, maxTotalTimeout: undefined }

/**
 * The `tasks/result` request for a client that does not support tasks: messages to the client lose their reference to
 * the task, and so belong to the client's call.
 */
class HiddenTaskExchange extends DerivedExchange<unknown> {
  override notify (method: string, paramsText: string): void { super.notify(method, withoutRelatedTask(paramsText)) }

  override async ask (question: Question): Promise<Response> {
    const paramsText = withoutRelatedTask(question.paramsText)
    return await super.ask({ ...question, paramsText, params: JSON.parse(paramsText) as Record<string, unknown> })
  }
}

interface LegacyTasksDeps {
  /** Sends a request unchanged. @throws UpstreamError if there is no answer */
  readonly send: (exchange: Exchange, options: Options) => Promise<Response>
  /** Sends one of the gateway's own requests. @returns the result, as JSON text */
  readonly request: (method: string, paramsText: string) => Promise<string>
  /** Returns the progress token of the next request. */
  readonly nextToken: () => number
}

/** A task whose result is awaited. */
interface Held {
  readonly task: HeldTaskExchange
  /** The owner whose share the wait counts against. */
  readonly owner: string
  readonly response: Promise<Response>
}

/**
 * Serves the tasks of a 2025-11-25 server to other clients: those with the extension `io.modelcontextprotocol/tasks`,
 * and those that do not support tasks.
 */
export class LegacyServerTasks {
  readonly #deps: LegacyTasksDeps
  readonly #held = new Map<string, Held>()
  /** The requests that wait for hidden tasks, by the progress token of the call that created the task. */
  readonly #waitingExchanges = new RequestTable<number, Exchange>()

  constructor (deps: LegacyTasksDeps) {
    this.#deps = deps
  }

  /** Serves a request that must not be sent unchanged. @returns undefined for any other request */
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

  /** Returns the request that waits for the task of the call with this progress token. */
  waitingExchangeOf (token: number): Exchange | undefined { return this.#waitingExchanges.get(token) }

  /** Runs a tool as a task. A client with the Tasks extension gets the task, other clients get its result. */
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
    const id = task === undefined ? undefined : parseSmallMember(task, 'taskId')
    // The server may have run the tool without creating a task.
    if (task === undefined || typeof id !== 'string') return response
    const left = { ...options, changes: {}, deadlines: remainingDeadlines(options.deadlines, Date.now() - started) }
    if (exchange.taskForm !== 'extension') return await this.#wait(exchange, left, id, token)
    this.#hold(exchange, left, id)
    return { ...response, resultText: toModernCreateTaskResult(text, task) }
  }

  /** Waits for the result of a task that the client does not know of. If the call fails, the task is cancelled. */
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
      // The task has been created, so the error must not allow a retry of the call.
      throw error instanceof UpstreamError && error.didNotRun
        ? new UpstreamError('broken', error.messageForClients, { isPublic: true })
        : error
    } finally {
      this.#waitingExchanges.take(token)
    }
  }

  /** Serves `tasks/get` of the extension, whose result includes the outcome and the open questions. */
  async #get (exchange: Exchange, options: Options): Promise<Response> {
    const id = String(exchange.params.taskId)
    const response = await this.#deps.send(exchange, options)
    const { resultText } = response
    if (resultText === undefined) { this.#end(id); return response }
    const status = parseSmallMember(resultText, 'status')
    const taskResponse = (changes: Readonly<Record<string, string>>): Response =>
      ({ ...response, resultText: withMembers(toModernTask(resultText), changes) })
    if (status === 'cancelled') { this.#end(id); return taskResponse({}) }
    const held = this.#held.get(id) ?? this.#hold(exchange, options, id)
    if (terminalStates.has(status)) {
      const outcome = await held.response
      // The next `tasks/get` fetches the outcome again.
      this.#end(id)
      return outcome.errorText === undefined
        ? taskResponse({ status: '"completed"', result: completeResult(outcome.resultText ?? '{}') })
        : taskResponse({ status: '"failed"', error: outcome.errorText })
    }
    if (status === 'input_required') await held.task.waitForQuestion()
    const { inputRequests } = held.task
    return inputRequests === undefined
      ? taskResponse({ status: '"working"' })
      : taskResponse({ status: '"input_required"', inputRequests })
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

  /** Serves `tasks/cancel` of the extension; it succeeds even if the task has already ended. */
  async #cancel (exchange: Exchange, options: Options): Promise<Response> {
    const id = String(exchange.params.taskId)
    const response = await this.#deps.send(exchange, options)
    this.#end(id)
    if (response.errorText === undefined) return emptyResponse()
    const { resultText = '{}' } = await this.#deps.send(
      aboutTask(exchange, 'tasks/get', id), options
    )
    return terminalStates.has(parseSmallMember(resultText, 'status')) ? emptyResponse() : response
  }

  /** Begins to wait for a task's result in the background. */
  #hold (exchange: Exchange, options: Options, id: string): Held {
    const { client } = exchange
    const task = new HeldTaskExchange(exchange, id)
    const held: Held = {
      task,
      owner: client.owner ?? client.id,
      response: this.#deps.send(task, { ...options, changes: {}, deadlines: heldDeadlines })
    }
    this.#held.set(id, held)
    if (this.#held.size > maxHeld) this.#end(oldestOfLargest(this.#held))
    // If the wait fails, the next `tasks/get` starts another.
    held.response.catch(() => { if (this.#held.get(id) === held) this.#held.delete(id) })
    return held
  }

  #end (id: string): void {
    this.#held.get(id)?.task.cancel('the result is no longer needed')
    this.#held.delete(id)
  }
}

/**
 * Finds the owner with the most waits, and returns the id of its task that has waited longest: so no owner can end the
 * waits of others.
 */
function oldestOfLargest (held: ReadonlyMap<string, Held>): string {
  const idsOf = new Map<string, string[]>()
  for (const [id, { owner }] of held) pushTo(idsOf, owner, id)
  let largest: string[] = []
  for (const ids of idsOf.values()) if (ids.length > largest.length) largest = ids
  return largest[0] ?? ''
}

const emptyResponse = (): Response => ({ kind: 'response', id: null, resultText: '{}' })

/** Converts the result of a legacy task to the modern era, where it has a `resultType`. */
const completeResult = (text: string): string => withMembers(withoutRelatedTask(text), { resultType: '"complete"' })

/** Removes `task` from the call of a client that does not support tasks in this form. */
function withoutTask (exchange: Exchange): Exchange {
  const { view, params: { task: _, ...params }, paramsText } = exchange
  return new DerivedExchange(exchange, { view, params, paramsText: withMembers(paramsText, { task: undefined }) })
}

/** Derives a request about a task from another request. */
function aboutTask (exchange: Exchange, method: string, taskId: string): Exchange {
  const params = { taskId }
  return new DerivedExchange(exchange, { view: exchange.view, params, paramsText: JSON.stringify(params), method })
}

/** Subtracts elapsed time from a call's deadlines. @param elapsed in ms */
const remainingDeadlines = ({ maxTotalTimeout, ...others }: Deadlines, elapsed: number): Deadlines => ({
  ...others, maxTotalTimeout: maxTotalTimeout === undefined ? undefined : Math.max(maxTotalTimeout - elapsed, 0)
})

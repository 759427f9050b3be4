import { rpcCode, RpcError } from '../errors.ts'
import { UnattendedExchange, type Exchange, type Question } from '../exchange.ts'
import { isObject, membersOf, withMembers } from '../json.ts'
import type { Response } from '../message.ts'
import { withoutProgressToken } from '../progress.ts'
import { withoutRelatedTask } from '../task-ids.ts'

/** Max open questions of a task, and max length of each, in characters; beyond that, the server gets an error. */
const bounds = { questions: 16, length: 64 * 1024 }
/** Max time for the client to answer a question, in ms; beyond that, the server gets an error. */
const answerTime = 10 * 60_000
/** Max wait for the questions of a task whose status is `input_required`, in ms. */
const questionWait = 500

interface OpenQuestion {
  /** The question as JSON text, in the form of `inputRequests`. */
  readonly text: string
  readonly resolve: (response: Response) => void
  readonly fail: (reason: string) => void
}

/**
 * The `tasks/result` request for a task that the client polls (extension `io.modelcontextprotocol/tasks`). The request
 * stays open in the background, and the server's questions wait until the client answers them with `tasks/update`.
 */
export class HeldTaskExchange extends UnattendedExchange<unknown> {
  readonly #open = new Map<string, OpenQuestion>()
  #lastQuestion = 0
  #arrived: (() => void) | undefined

  /** @param original the client's request that created the task, or is about it */
  constructor ({ view, client, headers, address }: Exchange, taskId: string) {
    super({ view, client, method: 'tasks/result', params: { taskId }, headers, address, taskForm: 'parameter' })
  }

  override async ask ({ method, params, paramsText, signal }: Question): Promise<Response> {
    const own = withoutRelatedTask(withoutProgressToken(paramsText))
    const text = JSON.stringify({ method }).slice(0, -1) +
      `,"params":${params.elicitationId === undefined ? own : withMembers(own, { elicitationId: undefined })}}`
    if (this.cancelled !== undefined || this.#open.size >= bounds.questions || text.length > bounds.length) {
      throw new RpcError(rpcCode.internal, 'Too many requests to the client are unanswered', 'limit')
    }
    if (signal.aborted) throw new RpcError(rpcCode.internal, String(signal.reason), 'internal')
    const key = `question-${++this.#lastQuestion}`
    return await new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        clearTimeout(timer)
        this.#open.delete(key)
        reject(new RpcError(rpcCode.internal, reason, 'internal'))
      }
      const timer = setTimeout(() => { fail('The client did not answer in time') }, answerTime).unref()
      signal.addEventListener('abort', () => { fail(String(signal.reason)) }, { once: true })
      this.#open.set(key, {
        text,
        resolve: (response) => {
          clearTimeout(timer)
          resolve(response)
        },
        fail
      })
      this.#arrived?.()
    })
  }

  /** The open questions as `inputRequests`; undefined if there are none. */
  get inputRequests (): string | undefined {
    if (this.#open.size === 0) return undefined
    return `{${[...this.#open].map(([key, { text }]) => `${JSON.stringify(key)}:${text}`).join()}}`
  }

  /** Waits until there is an open question, at most for `questionWait`. */
  async waitForQuestion (): Promise<void> {
    if (this.#open.size > 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, questionWait)
      this.#arrived = () => { clearTimeout(timer); resolve() }
    })
  }

  /** Answers open questions; ignores other answers. @param responses the client's `inputResponses`, as JSON text */
  answer (responses: string): void {
    for (const { key, start, end } of membersOf(responses)) {
      const question = this.#open.get(key)
      const text = responses.slice(start, end)
      if (!question || !isObject(JSON.parse(text))) continue
      this.#open.delete(key)
      question.resolve({ kind: 'response', id: null, resultText: text })
    }
  }

  /** Cancels the `tasks/result` request, and fails the open questions. */
  override cancel (reason: string): void {
    super.cancel(reason)
    for (const { fail } of this.#open.values()) fail(reason)
  }
}

import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Question } from '../../../protocol/exchange.ts'
import { withMembers } from '../../../protocol/json.ts'
import { notificationText, requestText, type Response } from '../../../protocol/message.ts'
import { outgoingParams } from '../../../protocol/progress.ts'
import { memoryOfJson } from '../../base/body/index.ts'
import { type Release, ShareError, Shares } from '../../base/limits/index.ts'
import { downstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

interface OpenQuestion {
  readonly question: Question
  /** The memory that the question takes, in bytes. */
  readonly size: number
  readonly resolve: (response: Response) => void
  readonly reject: (error: RpcError) => void
  readonly timer: NodeJS.Timeout
  readonly release: Release
}

/** Shares of the memory for the open questions to all clients, in bytes. */
const questionMemory = new Shares(downstreamLimits.allQuestionsSize, 'open questions')

/** The unanswered questions (JSON-RPC requests) to one legacy client. They are limited per client and per owner. */
export class OpenQuestions {
  readonly #open = new Map<number, OpenQuestion>()
  readonly #owner: string
  #lastId = 0
  #size = 0

  /** @param owner the owner against whose memory share the questions count (`chargedOwnerOf`) */
  constructor (owner: string) { this.#owner = owner }

  /**
   * Sends a question, and waits for the response.
   * @param send sends a message on the question's stream
   * @throws RpcError if the question is withdrawn, times out, or exceeds a limit
   */
  async ask (send: (text: string) => void, question: Question): Promise<Response> {
    // The question may have been withdrawn while it waited for a stream.
    if (question.signal.aborted) throw new RpcError(rpcCode.internal, String(question.signal.reason), 'internal')
    const size = memoryOfJson(question.paramsText)
    const release = this.#reserve(size)
    const id = ++this.#lastId
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => { this.#dismiss(id, 'The client did not answer in time', send) }, gatewayLimits.questionTimeout
      ).unref()
      this.#open.set(id, { question, size, resolve, reject, timer, release })
      this.#size += size
      const withdraw = (): void => {
        this.#dismiss(id, String(question.signal.reason), send, question.withdrawal?.())
      }
      question.signal.addEventListener('abort', withdraw, { once: true })
      // The question's id is also its progress token.
      send(requestText(id, question.method, outgoingParams(question, {}, id)))
    })
  }

  /** Handles a response from the client. Ignores it if no question with its id is open. */
  answer (response: Response): void {
    if (typeof response.id === 'number') this.#take(response.id)?.resolve(response)
  }

  /** Forwards the client's progress notification for a question. */
  progress (token: unknown, paramsText: string): void {
    if (typeof token === 'number') this.#open.get(token)?.question.progress(paramsText)
  }

  /** Fails all open questions with the error that the client has disconnected. */
  clear (): void {
    for (const id of this.#open.keys()) {
      this.#take(id)?.reject(new RpcError(rpcCode.internal, 'The client has disconnected', 'internal'))
    }
  }

  /** Reserves memory for a question. @throws RpcError beyond the limits on number and size */
  #reserve (size: number): Release {
    const tooMany = new RpcError(rpcCode.internal, 'Too many requests to this client are unanswered', 'limit')
    if (this.#open.size >= downstreamLimits.questionsPerSession || this.#size + size > downstreamLimits.questionsSize) {
      throw tooMany
    }
    try {
      return questionMemory.take(this.#owner, size)
    } catch (error) {
      throw error instanceof ShareError ? tooMany : error
    }
  }

  /**
   * Fails a question, and sends the client a cancellation of the question.
   * @param params the parameters of the server's cancellation, as JSON text; undefined if the server sent none
   */
  #dismiss (id: number, reason: string, send: (text: string) => void, params?: string): void {
    const dismissed = this.#take(id)
    if (!dismissed) return
    send(notificationText('notifications/cancelled', params === undefined
      ? JSON.stringify({ requestId: id, reason })
      : withMembers(params, { requestId: String(id) })))
    dismissed.reject(new RpcError(rpcCode.internal, reason, 'internal'))
  }

  #take (id: number): OpenQuestion | undefined {
    const open = this.#open.get(id)
    if (!open) return undefined
    this.#open.delete(id)
    this.#size -= open.size
    open.release()
    clearTimeout(open.timer)
    return open
  }
}

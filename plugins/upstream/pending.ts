import type { Asker } from '../../protocol/exchange.ts'
import { limits } from '../limits/index.ts'

/** States of a task after which nothing more comes of it (MCP 2025-11-25, "Tasks"). */
const terminal: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** What outlives the call that began it, on one connection: tasks, and pages that a person was sent to. News of it are for who began it. */
export class Pending {
  readonly #begun = new Map<string, { asker: Asker, until: number }>()

  /** True while something is under way: the connection is needed. */
  get any (): boolean {
    if (this.#begun.size > 0) for (const [key, { until }] of this.#begun) if (until <= Date.now()) this.#begun.delete(key)
    return this.#begun.size > 0
  }

  /** Whether a client's principal has such a task here. */
  hasTask (id: unknown, { principal, id: client }: Asker): boolean {
    const { asker } = this.#begun.get(`task ${String(id)}`) ?? {}
    return asker !== undefined && (asker.principal ?? asker.id) === (principal ?? client)
  }

  /** What a server said of a task, in a result or a notification: `{taskId, status, ttl?}`, `ttl` in ms. */
  task (said: Record<string, unknown>, asker: Asker): void {
    const { taskId, status, ttl } = said
    if (typeof taskId !== 'string') return
    if (terminal.has(status)) this.#begun.delete(`task ${taskId}`)
    else this.#begin(`task ${taskId}`, asker, Math.min(typeof ttl === 'number' ? ttl : Infinity, limits.pendingTime))
  }

  /** A task whose result was fetched. */
  taskOver (id: unknown): void { this.#begun.delete(`task ${String(id)}`) }

  /** A client was sent to a page (`elicitation/create` with a URL). */
  elicitation (id: unknown, asker: Asker): void {
    if (typeof id === 'string') this.#begin(`elicitation ${id}`, asker, limits.questionTimeout)
  }

  /** Who began what a notification is about; undefined: it is about nothing that is known here. */
  ownerOf (method: string, params: Record<string, unknown>): Asker | undefined {
    const key = method === 'notifications/tasks/status' ? `task ${String(params.taskId)}` : `elicitation ${String(params.elicitationId)}`
    const { asker } = this.#begun.get(key) ?? {}
    if (method === 'notifications/elicitation/complete') this.#begun.delete(key)
    else if (asker) this.task(params, asker)
    return asker
  }

  #begin (key: string, asker: Asker, lifetime: number): void {
    this.#begun.set(key, { asker, until: Date.now() + lifetime })
    const oldest = this.#begun.size > limits.pending ? this.#begun.keys().next().value : undefined
    if (oldest !== undefined) this.#begun.delete(oldest)
  }
}

/** News that are about something begun earlier, and so for who began it. */
export const isOfPending = (method: string): boolean => method === 'notifications/tasks/status' || method === 'notifications/elicitation/complete'

import type { Client } from '../../../protocol/exchange.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { OwnedMap } from '../../base/limits/index.ts'
import type { Link } from './link.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** States of a task after which only its result is left to fetch (MCP 2025-11-25, "Tasks"). */
const terminal: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/**
 * The recipient of a task's progress: the token of the call that began the task stays valid. `token` is the upstream's,
 * on its link; `clientToken` the client's, as JSON text.
 */
interface TaskProgress {
  readonly client: Client, readonly link: Link, readonly token: number, readonly clientToken: string
}

interface Awaited {
  /** The owner that it counts to: the principal, or the address of a caller without credentials. */
  readonly owner: string
  readonly until: number
  /** Only its result is left to fetch. */
  readonly over: boolean
}

/**
 * What is awaited on one connection, by id. Beyond the bound, entries of the largest owner go, finished ones first,
 * then the oldest.
 */
class AwaitedMap<Value extends Awaited> extends Map<string, Value> {
  readonly #held = new OwnedMap<true>(upstreamLimits.tasksPerConnection, { onEvict: (id) => { super.delete(id) } })

  /** Sets an entry, and makes it the newest one of its owner. */
  override set (id: string, value: Value): this {
    this.delete(id)
    super.set(id, value)
    this.#held.set(value.owner, id, true, value.over)
    return this
  }

  override delete (id: string): boolean {
    const known = this.get(id)
    if (known) this.#held.delete(known.owner, id)
    return super.delete(id)
  }
}

interface Task extends Awaited {
  /** The principal that owns it, whichever of its clients is connected. */
  principal: string
  /** The client that began it or asked about it last, which gets its notifications and questions. Undefined: gone. */
  client: Client | undefined
  /** The connection on which the upstream mentioned it last. */
  link: Link
  progress: TaskProgress | undefined
}

/** A page that a client was sent to. */
interface Page extends Awaited { readonly client: Client }

/**
 * What outlives the call that began it, on the connections of one slot: tasks, and pages that people are sent to (URL
 * elicitation).
 */
export class TaskRegistry {
  readonly #tasks = new AwaitedMap<Task>()
  readonly #pages = new AwaitedMap<Page>()

  /** Something is under way: the connection is needed. */
  get any (): boolean {
    for (const begun of [this.#tasks, this.#pages]) {
      for (const [id, { until }] of begun) if (until <= Date.now()) begun.delete(id)
    }
    return this.#pages.size > 0 || [...this.#tasks.values()].some(({ over }) => !over)
  }

  /** The clients whose tasks are under way on a connection. */
  workersOn (link: Link): Client[] {
    if (this.#tasks.size === 0 || !this.any) return []
    return [...this.#tasks.values()].flatMap((task) =>
      task.link === link && !task.over && task.client ? [task.client] : [])
  }

  /** Whether a client's principal has such a task here, finished or not. */
  hasTask (id: unknown, client: Client): boolean {
    return this.#tasks.get(String(id))?.principal === principalOf(client)
  }

  knowsTask (id: unknown): boolean { return this.#tasks.has(String(id)) }

  /** The client that gets a task's notifications; undefined: the task is not known here, or its clients are gone. */
  ownerOfTask (id: unknown): Client | undefined { return this.#tasks.get(String(id))?.client }

  /**
   * Records the state of a task from a result or a notification.
   * @param state `{taskId, status, ttl?}`, `ttl` in ms
   * @param client the recipient of the result; undefined: a notification about a known task
   * @param progress of the call that begins it
   */
  task (state: Record<string, unknown>, link: Link, client?: Client, progress?: TaskProgress): void {
    const { taskId, status, ttl } = state
    if (!isRemembered(taskId)) return
    const known = this.#tasks.get(taskId)
    const principal = client ? principalOf(client) : known?.principal
    const owner = client ? ownerOf(client) : known?.owner
    if (principal === undefined || owner === undefined) return
    this.#tasks.set(taskId, {
      principal,
      owner,
      client: client ?? known?.client,
      link,
      until: Date.now() + Math.min(typeof ttl === 'number' ? ttl : Infinity, upstreamLimits.taskTime),
      over: terminal.has(status),
      progress: progress && isRemembered(progress.clientToken) ? progress : known?.progress
    })
  }

  taskOver (id: unknown): void {
    const task = this.#tasks.get(String(id))
    if (task) this.#tasks.set(String(id), { ...task, over: true })
  }

  /** The recipient of progress under a token of no open call. */
  progressOf (link: Link, token: unknown): TaskProgress | undefined {
    for (const { progress } of this.#tasks.values()) {
      if (progress?.token === token && progress?.link === link) return progress
    }
    return undefined
  }

  /** A client was sent to a page (`elicitation/create` with a URL). */
  elicitation (id: unknown, client: Client): void {
    if (!isRemembered(id)) return
    this.#pages.set(
      id, { owner: ownerOf(client), client, until: Date.now() + gatewayLimits.questionTimeout, over: false }
    )
  }

  /** The upstream says that a page is completed. @returns the client that was sent there */
  elicited (id: unknown): Client | undefined {
    const { client } = this.#pages.get(String(id)) ?? {}
    this.#pages.delete(String(id))
    return client
  }

  /** A client is gone. Another one of its principal may still ask for its tasks. */
  leave (id: string): void {
    for (const task of this.#tasks.values()) {
      if (task.client?.id === id) task.client = undefined
      if (task.progress?.client.id === id) task.progress = undefined
    }
  }
}

const isRemembered = (id: unknown): id is string => typeof id === 'string' && memoryOf(id) <= gatewayLimits.rememberedId
const ownerOf = ({ owner, id }: Client): string => owner ?? id
const principalOf = ({ principal, id }: Client): string => principal ?? id

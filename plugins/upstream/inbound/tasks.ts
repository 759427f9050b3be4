import type { Client } from '../../../protocol/exchange.ts'
import { limits } from '../../limits/index.ts'
import type { Link } from '../links/link.ts'

/** States of a task after which nothing more comes of it (MCP 2025-11-25, "Tasks"). */
const terminal: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** Whom progress of a task is for: the token of the call that began it (on a link, ours; the client's as text) holds as long as the task does. */
export interface TaskProgress { readonly client: Client, readonly link: Link, readonly token: number, readonly clientToken: string }

interface Task {
  /** Whose it is, whoever of its clients is there. */
  principal: string
  /** Who began it, or asked about it last: whom its news and questions are for. Undefined: gone. */
  client: Client | undefined
  /** The connection on which it was last told of. */
  link: Link
  until: number
  /** Nothing more comes of it but its result. */
  over: boolean
  progress: TaskProgress | undefined
}

/** What outlives the call that began it, on the connections of one slot: tasks, and pages that a person was sent to. News of it are for who began it. */
export class TaskRegistry {
  readonly #tasks = new Map<string, Task>()
  readonly #pages = new Map<string, { client: Client, until: number }>()

  /** True while something is under way: the connection is needed. */
  get any (): boolean {
    for (const begun of [this.#tasks, this.#pages]) for (const [id, { until }] of begun) if (until <= Date.now()) begun.delete(id)
    return this.#pages.size > 0 || [...this.#tasks.values()].some(({ over }) => !over)
  }

  /** The clients whose tasks are under way on a connection. */
  workersOn (link: Link): Client[] {
    return this.any ? [...this.#tasks.values()].flatMap((task) => task.link === link && !task.over && task.client ? [task.client] : []) : []
  }

  /** Whether a client's principal has such a task here, though it may be over: its result is still to be had. */
  hasTask (id: unknown, client: Client): boolean { return this.#tasks.get(String(id))?.principal === principalOf(client) }

  knowsTask (id: unknown): boolean { return this.#tasks.has(String(id)) }

  /** Whom what comes of a task is for; undefined: it is not known here, or they have gone. */
  ownerOfTask (id: unknown): Client | undefined { return this.#tasks.get(String(id))?.client }

  /**
   * What a server said of a task, in a result or a notification: `{taskId, status, ttl?}`, `ttl` in ms.
   * @param client whom it said it to; undefined: it told of one that is known
   * @param progress of the call that begins it
   */
  task (said: Record<string, unknown>, link: Link, client?: Client, progress?: TaskProgress): void {
    const { taskId, status, ttl } = said
    if (typeof taskId !== 'string') return
    const known = this.#tasks.get(taskId)
    const principal = client ? principalOf(client) : known?.principal
    if (principal === undefined) return
    const until = Date.now() + Math.min(typeof ttl === 'number' ? ttl : Infinity, limits.taskTime)
    this.#tasks.set(taskId, {
      principal,
      client: client ?? known?.client,
      link,
      until,
      over: terminal.has(status),
      progress: progress ?? known?.progress
    })
    if (this.#tasks.size <= limits.tasksPerConnection) return
    // What is over is missed least.
    const [oldest] = [...this.#tasks].find(([, { over }]) => over) ?? [...this.#tasks][0] ?? []
    if (oldest !== undefined) this.#tasks.delete(oldest)
  }

  /** A task whose result was fetched. */
  taskOver (id: unknown): void {
    const task = this.#tasks.get(String(id))
    if (task) task.over = true
  }

  /** Whom news of progress are for that carry the token of no call that is open. */
  progressOf (link: Link, token: unknown): TaskProgress | undefined {
    for (const { progress } of this.#tasks.values()) if (progress?.token === token && progress?.link === link) return progress
    return undefined
  }

  /** A client was sent to a page (`elicitation/create` with a URL). */
  elicitation (id: unknown, client: Client): void {
    if (typeof id !== 'string') return
    this.#pages.set(id, { client, until: Date.now() + limits.questionTimeout })
    const oldest = this.#pages.size > limits.tasksPerConnection ? this.#pages.keys().next().value : undefined
    if (oldest !== undefined) this.#pages.delete(oldest)
  }

  /** Who was sent to a page that a server says is done with. */
  elicited (id: unknown): Client | undefined {
    const { client } = this.#pages.get(String(id)) ?? {}
    this.#pages.delete(String(id))
    return client
  }

  /** A client has gone: its principal may still come for what it began. */
  leave (id: string): void {
    for (const task of this.#tasks.values()) {
      if (task.client?.id === id) task.client = undefined
      if (task.progress?.client.id === id) task.progress = undefined
    }
  }
}

const principalOf = ({ principal, id }: Client): string => principal ?? id

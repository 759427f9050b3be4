import type { Client } from '../../../protocol/exchange.ts'
import { terminalStates } from '../../../protocol/task-shapes.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { OwnedMap } from '../../base/limits/index.ts'
import type { Link } from './link.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/**
 * The recipient of a task's progress: the token of the call that started the task stays valid. `token` is the
 * upstream's token on its link; `clientToken` is the client's, as JSON text.
 */
interface TaskProgress {
  readonly client: Client, readonly link: Link, readonly token: number, readonly clientToken: string
}

interface AwaitedEntry {
  /** The owner that the entry is counted for: the principal, or the address of an unauthenticated caller. */
  readonly owner: string
  /** The time until which the entry is kept, in ms since the epoch. */
  readonly until: number
  /** Whether the task is finished, so that only its result remains to be fetched. */
  readonly isOver: boolean
}

/**
 * The awaited tasks or pages of one connection, by id. Beyond the limit, entries of the owner with the most entries are
 * evicted: finished ones first, then the oldest.
 */
class AwaitedMap<Value extends AwaitedEntry> extends Map<string, Value> {
  readonly #held = new OwnedMap<true>(upstreamLimits.tasksPerConnection, { onEvict: (id) => { super.delete(id) } })

  /** Sets an entry, and makes it the newest of its owner. */
  override set (id: string, value: Value): this {
    this.delete(id)
    super.set(id, value)
    this.#held.set(value.owner, id, true, value.isOver)
    return this
  }

  override delete (id: string): boolean {
    const known = this.get(id)
    if (known) this.#held.delete(known.owner, id)
    return super.delete(id)
  }
}

/** The principal whose call started a task, and the position of that call among those of all connections. */
interface TaskBegin { readonly principal: string, readonly order: number }

let lastBegin = 0

interface Task extends AwaitedEntry {
  /** The principal that owns the task, whichever of its clients is connected. */
  principal: string
  /** The call that started it; undefined if another replica or an earlier run started it. */
  begin: TaskBegin | undefined
  /**
   * The client that started it or last asked about it, which gets its notifications and questions; undefined if that
   * client is gone.
   */
  client: Client | undefined
  /** The connection on which the upstream last mentioned it. */
  link: Link
  progress: TaskProgress | undefined
}

/** A page that a client was sent to (URL elicitation). */
interface ElicitationPage extends AwaitedEntry { readonly client: Client }

/**
 * Tasks, and pages that users are sent to (URL elicitation), on a slot's connections. They outlive the calls that
 * started them.
 */
export class TaskRegistry {
  readonly #tasks = new AwaitedMap<Task>()
  readonly #pages = new AwaitedMap<ElicitationPage>()

  /** Whether a task or page is in progress, so that the connection is needed. */
  get hasAny (): boolean {
    for (const begun of [this.#tasks, this.#pages]) {
      for (const [id, { until }] of begun) if (until <= Date.now()) begun.delete(id)
    }
    return this.#pages.size > 0 || [...this.#tasks.values()].some(({ isOver }) => !isOver)
  }

  /** The clients whose tasks run on a connection. */
  taskClientsOn (link: Link): Client[] {
    if (this.#tasks.size === 0 || !this.hasAny) return []
    return [...this.#tasks.values()].flatMap((task) =>
      task.link === link && !task.isOver && task.client ? [task.client] : [])
  }

  /** Whether a client's principal has a task with this id here, finished or not. */
  hasTask (id: unknown, client: Client): boolean {
    return this.#tasks.get(String(id))?.principal === principalKeyOf(client)
  }

  /** The call that started a task; undefined if the task or the call is unknown here. */
  beginOf (id: unknown): TaskBegin | undefined { return this.#tasks.get(String(id))?.begin }

  /** Whether a task may run on a link: unless the upstream last mentioned it on another link. */
  mayRunOn (link: Link, id: unknown): boolean { return (this.#tasks.get(String(id))?.link ?? link) === link }

  knowsTask (id: unknown): boolean { return this.#tasks.has(String(id)) }

  /** The client that gets a task's notifications; undefined if the task is unknown here, or its clients are gone. */
  ownerOfTask (id: unknown): Client | undefined { return this.#tasks.get(String(id))?.client }

  /**
   * Records the state of a task from a result or a notification.
   * @param state `{taskId, status, ttl?}`, or `ttlMs` in place of `ttl`, both in ms
   * @param client the recipient of the result; undefined for a notification about a known task
   * @param begun set if the result is that of the call that starts the task; `progress` is that of the call
   */
  recordTask (
    state: Record<string, unknown>, link: Link, client?: Client, begun?: { readonly progress: TaskProgress | undefined }
  ): void {
    const { taskId, status, ttlMs, ttl = ttlMs } = state
    const progress = begun?.progress
    if (!isRemembered(taskId)) return
    const known = this.#tasks.get(taskId)
    const principal = client ? principalKeyOf(client) : known?.principal
    const owner = client ? ownerOf(client) : known?.owner
    if (principal === undefined || owner === undefined) return
    this.#tasks.set(taskId, {
      principal,
      begin: begun ? { principal, order: ++lastBegin } : known?.begin,
      owner,
      client: client ?? known?.client,
      link,
      until: Date.now() + Math.min(typeof ttl === 'number' ? ttl : Infinity, upstreamLimits.taskTime),
      isOver: terminalStates.has(status),
      progress: progress && isRemembered(progress.clientToken) ? progress : known?.progress
    })
  }

  /** Records that the result of a task was fetched. */
  endTask (id: unknown): void {
    const task = this.#tasks.get(String(id))
    if (task) this.#tasks.set(String(id), { ...task, isOver: true })
  }

  /** The recipient of progress whose token does not belong to an open call. */
  progressOf (link: Link, token: unknown): TaskProgress | undefined {
    for (const { progress } of this.#tasks.values()) {
      if (progress?.token === token && progress?.link === link) return progress
    }
    return undefined
  }

  /** Records that a client was sent to a page (`elicitation/create` with a URL). */
  recordElicitation (id: unknown, client: Client): void {
    if (!isRemembered(id)) return
    this.#pages.set(
      id, { owner: ownerOf(client), client, until: Date.now() + gatewayLimits.questionTimeout, isOver: false }
    )
  }

  /** Records that the upstream reports a page as completed. @returns the client that was sent there */
  completeElicitation (id: unknown): Client | undefined {
    const { client } = this.#pages.get(String(id)) ?? {}
    this.#pages.delete(String(id))
    return client
  }

  /** Removes a client that is gone. Another client of its principal may still ask for its tasks. */
  removeClient (id: string): void {
    for (const task of this.#tasks.values()) {
      if (task.client?.id === id) task.client = undefined
      if (task.progress?.client.id === id) task.progress = undefined
    }
  }
}

const isRemembered = (id: unknown): id is string => typeof id === 'string' && memoryOf(id) <= gatewayLimits.rememberedId
const ownerOf = ({ owner, id }: Client): string => owner ?? id
export const principalKeyOf = ({ principalKey: principal, id }: Client): string => principal ?? id

import type { Client } from '../../../protocol/exchange.ts'
import { terminalStates } from '../../../protocol/task-shapes.ts'
import { memoryOf } from '../../../protocol/text.ts'
import { OwnedMap } from '../../base/limits/index.ts'
import type { Link } from './link.ts'
import { upstreamLimits } from '../limits.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/**
 * Where progress of a task is sent. `token`: the progress token of the call that started the task, as sent on `link`;
 * the server uses the token even after that call is answered. `clientToken`: the client's own token for that call, as
 * JSON text.
 */
interface TaskProgress {
  readonly client: Client, readonly link: Link, readonly token: number, readonly clientToken: string
}

interface AwaitedEntry {
  /** The owner whose limit the entry counts against: a user, a system key, or the address of a caller. */
  readonly owner: string
  /** The time until which the entry is kept, in ms since the epoch. */
  readonly until: number
  /** Whether the task is finished. Finished entries are the first to be evicted. */
  readonly isOver: boolean
}

/**
 * The awaited tasks or elicitation pages of one slot, by id. Beyond the limit, entries of the owner with the most
 * entries are evicted: finished ones first, then the oldest.
 */
class AwaitedMap<Value extends AwaitedEntry> extends Map<string, Value> {
  readonly #held = new OwnedMap<true>(upstreamLimits.tasksPerConnection, { onEvict: (id) => { super.delete(id) } })

  /** Sets an entry, and makes it the newest one of its owner. */
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

/** The start of a task: the principal that started it, and a number that is higher than that of all earlier starts. */
interface TaskBegin { readonly principal: string, readonly order: number }

let lastBegin = 0

interface Task extends AwaitedEntry {
  /** The principal that owns the task. All of its clients may ask for the task. */
  principal: string
  /** The start of the task; undefined if another replica or an earlier run started it. */
  begin: TaskBegin | undefined
  /**
   * The client that started it or last asked about it, which gets its notifications and questions; undefined if that
   * client is gone.
   */
  client: Client | undefined
  /** The connection on which the upstream last mentioned the task. */
  link: Link
  progress: TaskProgress | undefined
}

/** A page to which a client was sent (URL elicitation). */
interface ElicitationPage extends AwaitedEntry { readonly client: Client }

/**
 * The MCP tasks, and the pages of URL elicitations, that calls on a slot's connections have started. Both may outlive
 * these calls.
 */
export class TaskAndElicitationRegistry {
  readonly #tasks = new AwaitedMap<Task>()
  readonly #pages = new AwaitedMap<ElicitationPage>()

  /** Whether a page or an unfinished task is awaited, so that the connection is needed. Forgets expired entries. */
  get hasAny (): boolean {
    for (const begun of [this.#tasks, this.#pages]) {
      for (const [id, { until }] of begun) if (until <= Date.now()) begun.delete(id)
    }
    return this.#pages.size > 0 || [...this.#tasks.values()].some(({ isOver }) => !isOver)
  }

  /** Returns the clients of the unfinished tasks on a connection; a client with several tasks is repeated. */
  taskClientsOn (link: Link): Client[] {
    if (this.#tasks.size === 0 || !this.hasAny) return []
    return [...this.#tasks.values()].flatMap((task) =>
      task.link === link && !task.isOver && task.client ? [task.client] : [])
  }

  /** Whether a client's principal has a task with this id on this slot, finished or not. */
  hasTask (id: unknown, client: Client): boolean {
    return this.#tasks.get(String(id))?.principal === principalKeyOf(client)
  }

  /** Returns the start of a task; undefined if the task or its start is unknown on this slot. */
  beginOf (id: unknown): TaskBegin | undefined { return this.#tasks.get(String(id))?.begin }

  /** Whether a task may run on a link: false if the upstream last mentioned it on another link. */
  mayRunOn (link: Link, id: unknown): boolean { return (this.#tasks.get(String(id))?.link ?? link) === link }

  knowsTask (id: unknown): boolean { return this.#tasks.has(String(id)) }

  /** Returns the client that gets a task's notifications; undefined if the task is unknown or its client is gone. */
  ownerOfTask (id: unknown): Client | undefined { return this.#tasks.get(String(id))?.client }

  /**
   * Records the state of a task from a result or a notification.
   * @param state `{taskId, status, ttl?}`, or with `ttlMs` in place of `ttl`; both are in ms
   * @param client the recipient of the result; undefined for a notification, which is ignored if the task is unknown
   * @param begun set if the result answers the call that starts the task; `progress`: where its progress is sent
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

  /** Marks a task as finished, because its result was fetched. */
  endTask (id: unknown): void {
    const task = this.#tasks.get(String(id))
    if (task) this.#tasks.set(String(id), { ...task, isOver: true })
  }

  /** Finds the task to which a progress token on this link belongs, and returns where its progress is sent. */
  progressOf (link: Link, token: unknown): TaskProgress | undefined {
    for (const { progress } of this.#tasks.values()) {
      if (progress?.token === token && progress?.link === link) return progress
    }
    return undefined
  }

  /** Records that a client was sent to a page (URL elicitation). @param id the `elicitationId` */
  recordElicitation (id: unknown, client: Client): void {
    if (!isRemembered(id)) return
    this.#pages.set(
      id, { owner: ownerOf(client), client, until: Date.now() + gatewayLimits.questionTimeout, isOver: false }
    )
  }

  /** Removes a page that the upstream reports as completed. @returns the client that was sent there, if known */
  completeElicitation (id: unknown): Client | undefined {
    const { client } = this.#pages.get(String(id)) ?? {}
    this.#pages.delete(String(id))
    return client
  }

  /** Forgets a client that is gone. Its tasks are kept: another client of its principal may still ask for them. */
  removeClient (id: string): void {
    for (const task of this.#tasks.values()) {
      if (task.client?.id === id) task.client = undefined
      if (task.progress?.client.id === id) task.progress = undefined
    }
  }
}

const isRemembered = (id: unknown): id is string => typeof id === 'string' && memoryOf(id) <= gatewayLimits.rememberedId
const ownerOf = ({ owner, id }: Client): string => owner ?? id
/** Returns the key of a client's principal; the client's id if it has none. */
export const principalKeyOf = ({ principalKey: principal, id }: Client): string => principal ?? id

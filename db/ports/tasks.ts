import { recordCollections, userLabel, RecordPort } from '../records.ts'

const { tasks } = recordCollections

/**
 * A task that a client started, with its last state known to the gateway. Arguments and results are not stored.
 */
export interface TaskRecord {
  /** The id of the record, which is derived from the owner, the route and the server's task. */
  readonly id: string
  /**
   * The owner, whose `tasks/list` shows the task: the key of the principal, or an id of a client without credentials.
   */
  readonly owner: string
  /** The key of the principal that started the task. */
  readonly principal: string
  /** The name under which the task's connections to the server are kept (`Principal.user`): a user, or a key's name. */
  readonly user: string
  /** The stored user of the principal, who may see and cancel the task; undefined if there is none. */
  readonly username?: string
  readonly keyName?: string
  /** The route on which the task was started: the scope and presentation of its view. */
  readonly route: unknown
  /** The task id that the client has received, which contains the server's task id in encrypted form. */
  readonly handle: string
  readonly server: string
  /** The tool's own name at its server. */
  readonly tool: string
  /** The state as the server reports it (`TaskStatus`, MCP 2025-11-25). */
  readonly state: string
  /** When the server created the task, in ms since 1970; `updatedAt`: when the gateway last saw the task change. */
  readonly createdAt: number
  readonly updatedAt: number
  /** How long the server keeps the task, in ms; undefined if the server sets no limit. */
  readonly ttl?: number
}

/** Stores the tasks of all replicas, as records. They survive a restart only with a database. */
export class Tasks extends RecordPort {
  /** Stores a task, in place of its former state. @param lifetime how long the record is kept from now on, in ms */
  async put (task: TaskRecord, lifetime: number): Promise<void> {
    const { id, owner, username, createdAt } = task
    const labels = username === undefined ? [] : [userLabel(username)]
    await this.records.put(tasks, [
      { key: id, value: { ...task }, owner, labels, at: createdAt, expiresIn: lifetime }
    ])
  }

  async find (id: string): Promise<TaskRecord | undefined> {
    return (await this.records.find(tasks, id))?.value as TaskRecord | undefined
  }

  /** Lists the tasks of an owner, or of a stored user, newest first; by default, all tasks. */
  async list (of?: { readonly owner: string } | { readonly username: string }): Promise<TaskRecord[]> {
    const filter = of !== undefined && 'username' in of ? { labels: [userLabel(of.username)] } : of ?? {}
    const found = await this.records.list(tasks, filter)
    return found.flatMap(({ value }) => value === undefined ? [] : [value as TaskRecord])
  }

  async remove (id: string): Promise<void> { await this.records.remove(tasks, id) }
}

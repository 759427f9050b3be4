import { recordCollections, userLabel, type Records } from '../records.ts'

const { tasks } = recordCollections

/**
 * A task that a client started, with the state that the gateway last saw. It contains neither arguments nor results.
 */
export interface TaskRecord {
  /** The id, which is the same for the same task of the same principal on the same route. */
  readonly id: string
  /** The owner whose tasks are listed together: the key of the principal; without credentials, the client. */
  readonly owner: string
  /** The key of the principal. */
  readonly principal: string
  /** The user whose connections to the server it uses. */
  readonly user: string
  /** The stored user of the principal, who may see and cancel it. */
  readonly username?: string
  readonly keyName?: string
  /** The route: the scope and presentation of its view. */
  readonly route: unknown
  /** The task id that the client got: the server's id, encrypted. */
  readonly handle: string
  readonly server: string
  /** The name of the tool at its server. */
  readonly tool: string
  /** The state as the server reports it (`TaskStatus`, MCP 2025-11-25). */
  readonly state: string
  /** When the server created it, and when the gateway last saw it change, in ms since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
  /** How long the server keeps it, in ms; absent if the server sets no limit. */
  readonly ttl?: number
}

/** The tasks of all replicas, as records. They survive a restart only with a database. */
export class Tasks {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  /** Stores a task, replacing its former state. @param lifetime how long it is remembered, in ms */
  async put (task: TaskRecord, lifetime: number): Promise<void> {
    const { id, owner, username, createdAt } = task
    const labels = username === undefined ? [] : [userLabel(username)]
    await this.#records.put(tasks, [
      { key: id, value: { ...task }, owner, labels, at: createdAt, expiresIn: lifetime }
    ])
  }

  async find (id: string): Promise<TaskRecord | undefined> {
    return (await this.#records.find(tasks, id))?.value as TaskRecord | undefined
  }

  /** Lists tasks, newest first: those of an owner, or of a stored user; all if neither is given. */
  async list (of?: { readonly owner: string } | { readonly username: string }): Promise<TaskRecord[]> {
    const filter = of !== undefined && 'username' in of ? { labels: [userLabel(of.username)] } : of ?? {}
    const found = await this.#records.list(tasks, filter)
    return found.flatMap(({ value }) => value === undefined ? [] : [value as TaskRecord])
  }

  async remove (id: string): Promise<void> { await this.#records.remove(tasks, id) }
}

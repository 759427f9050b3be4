/** A task that a client began, as a replica saw it last. It has neither arguments nor results. */
export interface TaskRecord {
  /** The same for the same task of the same principal on the same route. */
  readonly id: string
  /** Whose tasks are listed together: the key of the principal; without credentials, the client. */
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
  /** The sealed id by which the client knows it. */
  readonly handle: string
  readonly server: string
  /** The tool by its own name. */
  readonly tool: string
  /** As the server calls it (`TaskStatus`, MCP 2025-11-25). */
  readonly state: string
  /** When the server began it, and when a replica saw it change, in ms since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
  /** How long the server keeps it, in ms; absent: the server sets no limit. */
  readonly ttl?: number
}

/** The tasks of all replicas. With a database they survive a restart. */
export interface Tasks {
  /** Stores a task in place of a former state of it. @param lifetime how long it is remembered, in ms */
  put: (task: TaskRecord, lifetime: number) => Promise<void>
  find: (id: string) => Promise<TaskRecord | undefined>
  /** Lists tasks, the newest first: those of an owner, or of a stored user; all if neither is given. */
  list: (of?: { readonly owner: string } | { readonly username: string }) => Promise<TaskRecord[]>
  remove: (id: string) => Promise<void>
}

import { limits } from '../limits/index.ts'

/** Who may ask about a task, and where it runs. */
export interface TaskOwner { readonly principal: string, readonly server: string }

/** Tasks of 2025-11-25: a task id names no server, and must not be a key to somebody else's work. */
export class Tasks {
  readonly #owners = new Map<string, TaskOwner>()

  /** Notes the task that a result announces, if it does. */
  note (result: string, owner: TaskOwner): void {
    if (!result.includes('"taskId"')) return
    const { task } = JSON.parse(result) as { task?: { taskId?: unknown } }
    if (typeof task?.taskId !== 'string') return
    this.#owners.set(keyOf(owner.server, task.taskId), owner)
    const oldest = this.#owners.size > limits.tasks ? this.#owners.keys().next().value : undefined
    if (oldest !== undefined) this.#owners.delete(oldest)
  }

  /** Which of these servers runs a task of this principal; the first, where several have one of this id. */
  serverOf (taskId: unknown, principal: string, servers: readonly string[]): string | undefined {
    return servers.find((server) => this.owns(taskId, principal, server))
  }

  owns (taskId: unknown, principal: string, server: string): boolean {
    return typeof taskId === 'string' && this.#owners.get(keyOf(server, taskId))?.principal === principal
  }
}

/** Servers choose task ids for themselves: two may choose the same. */
const keyOf = (server: string, taskId: string): string => `${server}\n${taskId}`

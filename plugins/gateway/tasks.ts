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
    this.#owners.set(task.taskId, owner)
    const oldest = this.#owners.size > limits.tasks ? this.#owners.keys().next().value : undefined
    if (oldest !== undefined) this.#owners.delete(oldest)
  }

  /** The server that runs a task of this principal. */
  serverOf (taskId: unknown, principal: string): string | undefined {
    const owner = typeof taskId === 'string' ? this.#owners.get(taskId) : undefined
    return owner?.principal === principal ? owner.server : undefined
  }

  owns (taskId: unknown, principal: string, server: string): boolean {
    return this.serverOf(taskId, principal) === server
  }
}

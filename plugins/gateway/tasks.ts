import { limits } from '../limits/index.ts'

/** Who may ask about a task, and where it runs. */
export interface TaskOwner { readonly principal: string, readonly server: string }

/** Tasks of 2025-11-25: a task id names no server, and must not be a key to somebody else's work. Servers choose ids for themselves, and may give two principals the same one. */
export class Tasks {
  readonly #owned = new Set<string>()

  /** Notes the task that a result announces, if it does. */
  note (result: string, owner: TaskOwner): void {
    if (!result.includes('"taskId"')) return
    const { task } = JSON.parse(result) as { task?: { taskId?: unknown } }
    if (typeof task?.taskId !== 'string') return
    this.#owned.add(keyOf(owner, task.taskId))
    const oldest = this.#owned.size > limits.tasks ? this.#owned.values().next().value : undefined
    if (oldest !== undefined) this.#owned.delete(oldest)
  }

  /** Which of these servers runs a task of this principal; the first, where several have one of this id. */
  serverOf (taskId: unknown, principal: string, servers: readonly string[]): string | undefined {
    return servers.find((server) => this.owns(taskId, principal, server))
  }

  owns (taskId: unknown, principal: string, server: string): boolean {
    return typeof taskId === 'string' && this.#owned.has(keyOf({ principal, server }, taskId))
  }
}

const keyOf = ({ principal, server }: TaskOwner, taskId: string): string => JSON.stringify([server, principal, taskId])

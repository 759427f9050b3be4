import { limits } from '../limits/index.ts'

/** Whose task it is, and where it runs. */
export interface TaskOwner { readonly principal: string, readonly provider: string }

/**
 * Which principal owns which task of 2025-11-25. A task id names no provider and must not open somebody else's work: servers choose ids
 * for themselves, and may give two principals the same one.
 */
export class TaskOwners {
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

  /** Which of these providers runs a task of this principal; the first, where several have one of this id. */
  providerOf (taskId: unknown, principal: string, providers: readonly string[]): string | undefined {
    return providers.find((provider) => this.owns(taskId, principal, provider))
  }

  owns (taskId: unknown, principal: string, provider: string): boolean {
    return typeof taskId === 'string' && this.#owned.has(keyOf({ principal, provider }, taskId))
  }
}

const keyOf = ({ principal, provider }: TaskOwner, taskId: string): string => JSON.stringify([provider, principal, taskId])

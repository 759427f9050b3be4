import { isObject, smallMemberOf } from '../../protocol/json.ts'
import { memoryOf } from '../../protocol/text.ts'
import { limits, OwnedMap } from '../base/limits/index.ts'

/** The principal that a task belongs to, and the provider that runs it. */
interface TaskOwner { readonly principal: string, readonly provider: string }

/**
 * The owners of tasks (MCP 2025-11-25). A task id names no provider and must not give access to another principal's task: servers choose
 * the ids themselves, and two servers may give two principals the same one.
 */
export class TaskOwners {
  readonly #owned = new OwnedMap<true>(limits.tasks)

  /** Notes the task that a result announces, if it does. */
  note (result: string, owner: TaskOwner): void {
    if (!result.includes('"taskId"')) return
    const task = smallMemberOf(result, 'task')
    if (!isObject(task) || typeof task.taskId !== 'string' || memoryOf(task.taskId) > limits.rememberedId) return
    this.#owned.set(owner.principal, keyOf(owner.provider, task.taskId), true)
  }

  /** The first of these providers that runs a task of this principal with this id. */
  providerOf (taskId: unknown, principal: string, providers: readonly string[]): string | undefined {
    return providers.find((provider) => this.owns(taskId, principal, provider))
  }

  owns (taskId: unknown, principal: string, provider: string): boolean {
    return typeof taskId === 'string' && this.#owned.get(principal, keyOf(provider, taskId)) === true
  }
}

const keyOf = (provider: string, taskId: string): string => JSON.stringify([provider, taskId])

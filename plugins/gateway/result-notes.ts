import { isObject, smallMemberOf, elementsOf, memberOf } from '../../protocol/json.ts'
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

/** URIs that take more memory are not remembered, in bytes. */
const longestUri = 1_024
/** Further blocks of a result, and longer ones (in characters), are not looked at. */
const mostBlocks = 10_000
const longestBlock = 64 * 1024

/**
 * The resources that results of tools linked to, and the provider of each link. Such a resource need not be in any list (MCP, "Resource
 * Links"), and is read from the provider that linked to it.
 */
export class ResourceLinks {
  readonly #providers = new OwnedMap<string>(limits.resourceLinks)

  /** Notes the resource links in a result. @param principal the one that gets the result */
  note (result: string, principal: string, provider: string): void {
    if (!result.includes('"resource_link"')) return
    for (const text of elementsOf(memberOf(result, 'content') ?? '', mostBlocks)) {
      if (text.length > longestBlock || !text.includes('"resource_link"')) continue
      const block: unknown = JSON.parse(text)
      if (!isObject(block) || block.type !== 'resource_link' || typeof block.uri !== 'string') continue
      if (memoryOf(block.uri) <= longestUri) this.#providers.set(principal, block.uri, provider)
    }
  }

  /** The provider that last linked a principal to a resource. */
  providerOf (uri: string, principal: string): string | undefined { return this.#providers.get(principal, uri) }
}

import { hash } from 'node:crypto'
import type { TaskRecord, Tasks } from '../../db/ports/tasks.ts'
import { StorageError } from '../../db/store.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import { NonMcpClient, UnattendedExchange, type Client } from '../../protocol/exchange.ts'
import { parseSmallMember } from '../../protocol/json.ts'
import type { Provider } from '../../protocol/provider.ts'
import { terminalStates } from '../../protocol/task-shapes.ts'
import { OwnedMap } from '../base/limits/index.ts'
import { type Access, toBearerKeyIdentity, makeView, routeKeyOf, type View } from '../settings/index.ts'
import type { Forwarder } from './forward.ts'
import { gatewayLimits } from './limits.ts'
import type { ProviderTable } from './providers.ts'
import { serverFingerprint, taskOwnerOf, type TaskHandles, type TaskTarget } from './task-handles.ts'

/** The error for an unknown task, and for a task of another principal or route: callers cannot tell them apart. */
export const unknownTaskError = (): RpcError => new RpcError(rpcCode.invalidParams, 'Unknown task')

/** Returns the result of `Provider.taskRun`; '' for a provider without this method. */
export const providerRunOfTask = (
  provider: Provider | undefined, exchange: Parameters<NonNullable<Provider['taskRun']>>[0], id: string
): string | undefined => provider?.taskRun === undefined ? '' : provider.taskRun(exchange, id)

interface RunningTasksDeps {
  /** The storage shared by all replicas; undefined: tasks are not stored. */
  readonly store: Tasks | undefined
  readonly handles: TaskHandles
  readonly providers: ProviderTable
  readonly forwarder: Forwarder
  readonly access: Pick<Access, 'snapshot'>
  readonly logError: (error: unknown, sentence: string) => void
}

/** Stores the tasks that clients created, with their last known states. Admins and users can list and cancel them. */
export class RunningTasks {
  readonly #deps: RunningTasksDeps
  /** By owner and id: the states that this process has stored. */
  readonly #states = new OwnedMap<string>(gatewayLimits.tasks)
  /** The writes in progress, by task id. */
  readonly #writing = new Map<string, Promise<void>>()

  constructor (deps: RunningTasksDeps) {
    this.#deps = deps
  }

  /**
   * Stores a task, unless this process has stored the same state. Has no effect while the storage is unavailable.
   * @param handle the id by which the client knows the task
   * @param task the JSON text of the task as its server reports it, in either of the `TaskForm`s
   */
  async recordState (view: View, client: Client, target: TaskTarget, handle: string, task: string): Promise<void> {
    const owner = taskOwnerOf(view, client)
    const id = idOf(owner, view, target)
    const state = stateIn(task)
    if (state === undefined || this.#states.get(owner, id) === state) return
    await this.#store(recordOf(view, { id, owner, target, handle, task, state }))
  }

  /** Like `recordState`, for a notification from a provider to a client. */
  recordNotification (client: Client, handle: string, task: string): void {
    const { handles, logError } = this.#deps
    const view = client.listener?.view as View
    const target = handles.open(view, handle)
    if (!target) return
    this.recordState(view, client, target, handle, task)
      .catch((error: unknown) => { logError(error, 'the state of a task could not be stored') })
  }

  /** Records that a task has ended, if the task is stored. Called when no further report of the server is expected. */
  async recordEnd (view: View, client: Client, target: TaskTarget, state: 'completed' | 'failed'): Promise<void> {
    const owner = taskOwnerOf(view, client)
    const id = idOf(owner, view, target)
    if (terminalStates.has(this.#states.get(owner, id))) return
    await ignoringOutages(async () => {
      const known = await this.find(id)
      if (known) await this.#store({ ...known, state, updatedAt: Date.now() })
    })
  }

  /** Removes a task that its server no longer knows. */
  async forget (view: View, client: Client, target: TaskTarget): Promise<void> {
    const owner = taskOwnerOf(view, client)
    await this.#remove({ owner, id: idOf(owner, view, target) })
  }

  async #remove ({ owner, id }: Pick<TaskRecord, 'owner' | 'id'>): Promise<void> {
    this.#states.delete(owner, id)
    await ignoringOutages(async () => { await this.#deps.store?.remove(id) })
  }

  /** The handles of the tasks that a client may list in a view, by `providerTaskKey`. */
  async handlesOf (view: View, client: Client): Promise<Map<string, string>> {
    const { store, handles } = this.#deps
    const found = new Map<string, string>()
    await ignoringOutages(async () => {
      for (const { route, handle } of await store?.list({ owner: taskOwnerOf(view, client) }) ?? []) {
        const target = routeKeyOf(route as View) === routeKeyOf(view) ? handles.open(view, handle) : undefined
        if (target) found.set(providerTaskKey(target.provider, target.id), handle)
      }
    })
    return found
  }

  /**
   * The tasks that have not ended, newest first.
   * @param username the user whose tasks are returned; undefined: the tasks of all users
   * @throws StorageError
   */
  async list (username?: string): Promise<TaskRecord[]> {
    const all = await this.#deps.store?.list(username === undefined ? undefined : { username }) ?? []
    return all.filter(({ state }) => !terminalStates.has(state))
  }

  /** Finds a task that has not ended. @throws StorageError */
  async find (id: string): Promise<TaskRecord | undefined> {
    const task = await this.#deps.store?.find(id)
    return task && !terminalStates.has(task.state) ? task : undefined
  }

  /**
   * Cancels a task on behalf of its principal, even if the principal may no longer use its tool. A task that its server
   * does not know, or whose server was removed or replaced, is removed.
   * @returns the task with its state after the request
   * @throws RpcError -32602 if the task is unknown, or its server's run has ended or is on another replica; errors of
   *   the server
   */
  async cancel (task: TaskRecord): Promise<TaskRecord> {
    const { handles, providers, forwarder, access } = this.#deps
    const { id, principal: key, user, route, handle, server } = task
    const { scope, presentation } = route as Pick<View, 'scope' | 'presentation'>
    const view = makeView({ key, kind: 'user-key', user, isAdmin: false }, scope, presentation)
    const target = handles.open(view, handle)
    const config = access.snapshot.servers.get(server)?.config
    if (!target || serverFingerprint(server, config) !== target.server) {
      await this.#remove(task)
      throw unknownTaskError()
    }
    const client = new NonMcpClient(`task ${id}`, user, key, false, key)
    const send = async (method: string): Promise<TaskRecord> => {
      const params = { taskId: target.id }
      const exchange = new UnattendedExchange({ view, client, method, params, taskForm: 'parameter' })
      // The task's run may have ended, or be a process of another replica.
      if (providerRunOfTask(providers.get(server), exchange, target.id) !== target.run) throw unknownTaskError()
      const state = stateIn(await forwarder.send(exchange, server, undefined))
      if (state === undefined) return task
      const changed = { ...task, state, updatedAt: Date.now() }
      await this.#store(changed)
      return changed
    }
    try {
      return await send('tasks/cancel')
    } catch (error) {
      // The task may have ended by itself: this records its state.
      if (error instanceof RpcError) {
        await send('tasks/get').catch(async (failure: unknown) => {
          if (isUnknownToServer(failure)) await this.#remove(task)
        })
      }
      throw error
    } finally {
      await providers.release(client)
    }
  }

  /** Stores a task, after previous writes of the same task. */
  async #store (task: TaskRecord): Promise<void> {
    const { id, owner, state, ttl = Infinity } = task
    this.#states.set(owner, id, state, terminalStates.has(state))
    const writing = (this.#writing.get(id) ?? Promise.resolve()).then(async () => {
      await ignoringOutages(
        async () => { await this.#deps.store?.put(task, Math.min(ttl, gatewayLimits.taskTime)) },
        () => { this.#states.delete(owner, id) }
      )
    }).finally(() => { if (this.#writing.get(id) === writing) this.#writing.delete(id) })
    this.#writing.set(id, writing)
    await writing
  }
}

/**
 * Runs work that needs the storage, and ignores that the storage is unavailable.
 * @param onFailure called if the work fails
 */
async function ignoringOutages (work: () => Promise<void>, onFailure = () => {}): Promise<void> {
  try {
    await work()
  } catch (error) {
    onFailure()
    if (!(error instanceof StorageError)) throw error
  }
}

const isUnknownToServer = (error: unknown): boolean =>
  error instanceof RpcError && error.code === rpcCode.invalidParams && error.reason === 'upstream'

/** The state of a task as its server reports it, truncated if long. */
function stateIn (task: string): string | undefined {
  const state = parseSmallMember(task, 'status')
  return typeof state === 'string' ? state.slice(0, gatewayLimits.taskState) : undefined
}

/** The id of a task in the storage, equal on all replicas. */
const idOf = (owner: string, view: View, { provider, server, id, run }: TaskTarget): string =>
  hash('sha256', JSON.stringify([owner, routeKeyOf(view), provider, server, id, run]), 'base64url')

/** The key of a task in the result of `handlesOf`. */
export const providerTaskKey = (provider: string, id: string): string => JSON.stringify([provider, id])

interface ReportedTask { id: string, owner: string, target: TaskTarget, handle: string, task: string, state: string }

/** Creates the record of a task. If the server does not state a creation time, the current time is used. */
function recordOf (view: View, { id, owner, target, handle, task, state }: ReportedTask): TaskRecord {
  const { principal, scope, presentation } = view
  const { key, user, username } = principal
  const { keyName } = toBearerKeyIdentity(principal)
  const [began, ttl] =
    [parseSmallMember(task, 'createdAt'), parseSmallMember(task, 'ttlMs') ?? parseSmallMember(task, 'ttl')]
  const createdAt = typeof began === 'string' ? Date.parse(began) : NaN
  return {
    id,
    owner,
    principal: key,
    user,
    ...username !== undefined && { username },
    ...keyName !== undefined && { keyName },
    route: { scope, presentation },
    handle,
    server: target.provider,
    tool: target.tool,
    state,
    createdAt: Number.isNaN(createdAt) ? Date.now() : createdAt,
    updatedAt: Date.now(),
    ...typeof ttl === 'number' && ttl >= 0 && { ttl: Math.min(ttl, gatewayLimits.taskTtl) }
  }
}

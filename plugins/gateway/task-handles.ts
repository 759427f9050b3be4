import { hash } from 'node:crypto'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Client } from '../../protocol/exchange.ts'
import { isObject } from '../../protocol/json.ts'
import { memoryOf } from '../../protocol/text.ts'
import { OwnedMap } from '../base/limits/index.ts'
import type { Sealer } from '../base/secrets/index.ts'
import { hasCredential, routeKeyOf, type View, type VisibleServer } from '../settings/index.ts'
import { gatewayLimits } from './limits.ts'

/** A task, and the server that runs it. */
export interface TaskTarget {
  readonly provider: string
  /** Identifies the server (`serverFingerprint`), since another server may have its name later. */
  readonly server: string
  /** The server's name of the tool that runs as the task. */
  readonly tool: string
  /** The server's id of the task. */
  readonly id: string
  /** The run of the server with which the task ends (`Provider.taskRun`): the next run may use the same task id. */
  readonly run: string
}

/** Max length of an accepted handle, in characters. */
const maxHandle = 8 * 1024

/** Identifies a server in texts that clients keep, since another server may have its name later. */
export function serverFingerprint (name: string, config: Partial<VisibleServer['server']['config']> = {}): string {
  const { createdAt, owner, url, command } = config
  return hash('sha256', JSON.stringify([name, createdAt, owner, url, command]), 'base64url')
}

/**
 * Creates and decrypts the task ids that clients get. Two servers may choose the same id, so a client gets a handle:
 * the task, encrypted for its principal and route. If the sealer's key is stored, handles can be decrypted on every
 * replica, and after a restart.
 */
export class TaskHandles {
  readonly #sealer: Sealer
  /** The handles that this process has seen, for tasks in servers' lists and messages. */
  readonly #known = new OwnedMap<string>(gatewayLimits.tasks)

  constructor (sealer: Sealer) {
    this.#sealer = sealer
  }

  /**
   * Returns the handle of a task that a client created in a view; the same one as long as it is remembered.
   * @throws RpcError if the server's id is too long for a handle
   */
  seal (view: View, client: Client, { provider, server, tool, id, run }: TaskTarget): string {
    if (memoryOf(id) > gatewayLimits.rememberedId) {
      throw new RpcError(rpcCode.internal, 'The server started a task, but its id is too long', 'upstream')
    }
    const text = JSON.stringify([provider, server, tool, id, run])
    const known = this.find(view, client, provider, id)
    const handle = known !== undefined && this.#unsealed(view, known) === text
      ? known
      : this.#sealer.seal(text, placeOf(view))
    this.remember(view, client, provider, id, handle)
    return handle
  }

  /** Decrypts a handle. @returns undefined if it is invalid, or was made for another principal or route */
  open (view: View, handle: unknown): TaskTarget | undefined {
    if (typeof handle !== 'string' || handle.length > maxHandle) return undefined
    const text = this.#unsealed(view, handle)
    if (text === undefined) return undefined
    const [provider = '', server = '', tool = '', id = '', run = ''] = JSON.parse(text) as string[]
    return { provider, server, tool, id, run }
  }

  /** Remembers the handle of a task that a client uses, for `find`. */
  remember (view: View, client: Client, provider: string, id: string, handle: string): void {
    this.#known.set(taskOwnerOf(view, client), keyOf(view, provider, id), handle)
  }

  #unsealed (view: View, handle: string): string | undefined {
    try {
      return this.#sealer.unseal(handle, placeOf(view))
    } catch {
      return undefined
    }
  }

  /** The handle of a task that this process has seen; undefined if it has not seen this client use the task. */
  find (view: View, client: Client, provider: string, id: unknown): string | undefined {
    return typeof id === 'string' ? this.#known.get(taskOwnerOf(view, client), keyOf(view, provider, id)) : undefined
  }

  /** Like `find`, for a message from a provider to a client. */
  findFor (client: Client, provider: string, id: string): string | undefined {
    const view = client.listener?.view
    return isObject(view) ? this.find(view as unknown as View, client, provider, id) : undefined
  }
}

const placeOf = (view: View): string => JSON.stringify(['task', view.principal.key, routeKeyOf(view)])

/** The owner whose tasks are listed and announced together. Without a credential, each client is an owner. */
export const taskOwnerOf = ({ principal }: View, { id }: Client): string =>
  hasCredential(principal) ? principal.key : `${principal.key} ${id}`

const keyOf = (view: View, provider: string, id: string): string => JSON.stringify([routeKeyOf(view), provider, id])

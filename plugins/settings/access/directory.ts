import type { Server, Snapshot } from '../../../db/store.ts'
import type { GroupMember } from '../../../schemas/settings.ts'
import type { ViewScope } from './view.ts'

/** A provider that the gateway registers itself. */
export interface RegisteredProvider extends Server {
  /**
   * Returns the items of the provider that a route includes, as a member of a group; undefined if the route does not
   * include the provider. Default: the global route includes the whole provider, and the routes of groups do not.
   */
  readonly memberIn?: ((settings: Snapshot, scope: ViewScope) => GroupMember | undefined) | undefined
}

/** Settings whose servers include the registered providers. */
export interface SnapshotWithRegistered extends Snapshot { readonly registered?: readonly RegisteredProvider[] }

/**
 * All servers to which the access rules apply: the configured servers, and the providers that the gateway registers
 * itself. A registered provider has an owner, a visibility and overrides, as a configured server has.
 */
export class ServerDirectory {
  readonly #settings: () => Snapshot
  readonly #registered = new Map<string, RegisteredProvider>()
  #merged: { from: Snapshot, snapshot: SnapshotWithRegistered } | undefined

  /** @param settings returns the current settings */
  constructor (settings: () => Snapshot) {
    this.#settings = settings
  }

  /** The current settings, with the registered providers after the servers. The same object until either changes. */
  get current (): SnapshotWithRegistered {
    const settings = this.#settings()
    if (this.#registered.size === 0) return settings
    if (this.#merged?.from !== settings) {
      const servers = new Map<string, Server>([...settings.servers, ...this.#registered])
      const registered = [...this.#registered.values()]
      this.#merged = { from: settings, snapshot: { ...settings, servers, registered } }
    }
    return this.#merged.snapshot
  }

  register (server: RegisteredProvider): void {
    this.#registered.set(server.name, server)
    this.#merged = undefined
  }
}

import type { Server, Snapshot } from '../../../db/store.ts'

/**
 * The objects that access decisions are about: the configured servers, and the providers that the gateway registers
 * itself. A registered provider has an owner, a visibility and overrides like a server, and follows the same rule.
 */
export class ServerDirectory {
  readonly #settings: () => Snapshot
  readonly #registered = new Map<string, Server>()
  #merged: { from: Snapshot, snapshot: Snapshot } | undefined

  /** @param settings the current settings */
  constructor (settings: () => Snapshot) {
    this.#settings = settings
  }

  /**
   * The current settings, with the registered providers after the servers. It returns the same object until either
   * changes.
   */
  get current (): Snapshot {
    const settings = this.#settings()
    if (this.#registered.size === 0) return settings
    if (this.#merged?.from !== settings) {
      this.#merged =
        { from: settings, snapshot: { ...settings, servers: new Map([...settings.servers, ...this.#registered]) } }
    }
    return this.#merged.snapshot
  }

  register (server: Server): void {
    this.#registered.set(server.name, server)
    this.#merged = undefined
  }
}

import type { Server, Snapshot } from '../../db/store.ts'

/**
 * What access decides about: the configured servers, and the providers that the program itself registers. Those have an owner, a
 * visibility and overrides as servers have, and so are seen and hidden by the same rule.
 */
export class Directory {
  readonly #settings: () => Snapshot
  readonly #registered = new Map<string, Server>()
  #merged: { from: Snapshot, snapshot: Snapshot } | undefined

  /** @param settings the current settings */
  constructor (settings: () => Snapshot) {
    this.#settings = settings
  }

  /** The current settings, with the registered providers after the servers. The same object for as long as neither changes. */
  get current (): Snapshot {
    const settings = this.#settings()
    if (this.#registered.size === 0) return settings
    if (this.#merged?.from !== settings) {
      this.#merged = { from: settings, snapshot: { ...settings, servers: new Map([...settings.servers, ...this.#registered]) } }
    }
    return this.#merged.snapshot
  }

  register (server: Server): void {
    this.#registered.set(server.name, server)
    this.#merged = undefined
  }
}

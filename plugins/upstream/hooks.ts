import type { ServerConfig } from '../../schemas/server.ts'

/** Receives what a server's process prints beside its messages, line by line. */
type LineListener = (server: string, line: string) => void
/** Why a server cannot be started as it is configured, as a clause; undefined: nothing is known to be wrong. */
type StartCheck = (config: ServerConfig) => Promise<string | undefined>

/** What other plugins add to the running of servers. */
export class UpstreamHooks {
  readonly #listeners: LineListener[] = []
  readonly #checks: StartCheck[] = []

  /** Registers a listener for the lines that servers' processes print. */
  onLine (listener: LineListener): void { this.#listeners.push(listener) }

  /** Registers a check that runs before a server's command is started. */
  beforeStart (check: StartCheck): void { this.#checks.push(check) }

  printed (server: string, line: string): void {
    for (const listener of this.#listeners) listener(server, line)
  }

  /** The first problem that a check finds. */
  async problemOf (config: ServerConfig): Promise<string | undefined> {
    for (const check of this.#checks) {
      const problem = await check(config)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

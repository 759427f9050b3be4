import type { ApiCredentials } from './call/credentials.ts'
import type { ApiDescription } from './describe/description.ts'

/** The description of an HTTP API, and the credentials for requests to it. */
export interface ApiWithCredentials { readonly description: ApiDescription, readonly credentials: ApiCredentials }

/** The API of one server of type `openapi`, which all links to the server share. It exists while there is a link. */
export class SharedApi {
  #api: ApiWithCredentials | undefined
  /** The `onChange` function of each link. */
  readonly #listeners = new Set<() => void>()

  /** Sentences about omitted parts of the description, with the reasons; empty if there is no link. */
  get warnings (): readonly string[] { return this.#api?.description.warnings ?? [] }

  /**
   * Acquires the API for one link.
   * @param describe creates the API for the first link; must call the function it receives whenever the description
   *   changes
   * @param onChange called when the description has changed
   * @returns the API, and a function that releases it
   */
  acquire (
    describe: (onChange: () => void) => ApiWithCredentials,
    onChange: () => void
  ): { api: ApiWithCredentials; release: () => void } {
    this.#api ??= describe(() => {
      for (const listener of this.#listeners) listener()
    })
    this.#listeners.add(onChange)
    const release = (): void => {
      if (!this.#listeners.delete(onChange) || this.#listeners.size > 0) return
      this.#api?.description.close()
      this.#api = undefined
    }
    return { api: this.#api, release }
  }
}

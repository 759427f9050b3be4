import type { ServerConfig } from '../../../schemas/server.ts'
import { reachOf, type Outbound } from '../../outbound/outbound.ts'
import { Credentials } from './call/credentials.ts'
import { Description } from './describe/description.ts'

/** A REST API that is alive: its description, and what authorizes its calls. */
export interface Api { readonly description: Description, readonly credentials: Credentials }

/** What all links to one server of type `openapi` share. It lives while any of them is open. */
export class SharedApi {
  #api: Api | undefined
  readonly #users = new Set<() => void>()

  /**
   * Begins to use the API.
   * @param changed told when the description is another one
   * @returns the API, and what ends the use
   */
  acquire (
    config: ServerConfig,
    outbound: Outbound,
    warn: (sentence: string) => void,
    changed: () => void
  ): { api: Api; leave: () => void } {
    this.#api ??= {
      description: new Description(config, {
        outbound,
        warn,
        onChange: () => {
          for (const each of this.#users) each()
        }
      }),
      credentials: new Credentials(config.openapi?.security, outbound, reachOf(config))
    }
    this.#users.add(changed)
    const leave = (): void => {
      if (!this.#users.delete(changed) || this.#users.size > 0) return
      this.#api?.description.close()
      this.#api = undefined
    }
    return { api: this.#api, leave }
  }
}

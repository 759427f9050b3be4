import { bearerKey, until } from '../helpers/hub.ts'

/** What the management API says about a server, as far as drivers look at it. */
export interface Shown { readonly status: string, readonly error: string | null, readonly oauth?: { readonly authorizationUrl: string } }

/** A server of the scenario in the gateway that run.ts has started: `TOOL_HUB_URL`. */
export class Tested {
  /** The gateway. */
  readonly hub: string
  /** Its endpoint for this server alone. */
  readonly url: string
  readonly #name: string

  private constructor (hub: string, name: string) {
    this.hub = hub
    this.url = `${hub}/mcp/${name}`
    this.#name = name
  }

  /** Adds it, under a name that no driver beside this one has. @param config its URL, and how to log in there */
  static async add (config: object): Promise<Tested> {
    const made = new Tested(process.env.TOOL_HUB_URL ?? '', `tested-${process.pid}`)
    await made.#api('POST', '', { name: made.#name, config: { type: 'streamable-http', ...config } })
    return made
  }

  async show (): Promise<Shown> { return await this.#api('GET', `/${this.#name}`) as Shown }

  /** Waits until it is connected or has failed, for now. */
  async settled (): Promise<Shown> {
    let shown = await this.show()
    await until(async () => (shown = await this.show()).status !== 'connecting', () => JSON.stringify(shown))
    return shown
  }

  async remove (): Promise<void> { await this.#api('DELETE', `/${this.#name}`) }

  async #api (method: string, path: string, body?: object): Promise<unknown> {
    const reply = await fetch(`${this.hub}/api/servers${path}`, {
      method,
      headers: { authorization: `Bearer ${bearerKey().token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body)
    })
    const { data, ...rest } = await reply.json() as { data?: unknown }
    if (!reply.ok) throw new Error(`${method} /api/servers${path}: ${reply.status} ${JSON.stringify(rest)}`)
    return data
  }
}

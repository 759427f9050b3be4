import type { Call } from '../call.ts'
import { memberOf } from '../json.ts'

/** Calls that a server refused because of their headers: a tool may repeat other arguments than before. */
export class HeaderCorrection {
  readonly #request: (method: string, paramsText: string) => Promise<string>
  readonly #pages: number
  /** Calls that are sent again with corrected headers. */
  readonly #corrected = new WeakSet<Call>()
  #rereading: Promise<void> | undefined

  /** @param request lists tools, and records their headers @param pages max pages read to learn those of one tool */
  constructor (request: (method: string, paramsText: string) => Promise<string>, pages: number) {
    this.#request = request
    this.#pages = pages
  }

  /**
   * Reads the schemas of the tools again (MCP 2026-07-28, "Client Behavior"), after which the call can be repeated.
   * @returns undefined for a call that was refused before, and for other methods
   */
  correct (call: Call): Promise<void> | undefined {
    if (call.method !== 'tools/call' || this.#corrected.has(call)) return undefined
    this.#corrected.add(call)
    this.#rereading ??= this.#readTools().catch(() => {}).finally(() => { this.#rereading = undefined })
    return this.#rereading
  }

  async #readTools (): Promise<void> {
    let params = '{}'
    const read = new Set<string>()
    for (let page = 0; page < this.#pages; page++) {
      const cursor = memberOf(await this.#request('tools/list', params), 'nextCursor')
      if (cursor === undefined || cursor === 'null' || read.has(cursor)) return
      read.add(cursor)
      params = `{"cursor":${cursor}}`
    }
  }
}

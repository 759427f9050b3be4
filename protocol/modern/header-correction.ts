import type { Call } from '../call.ts'
import { memberOf } from '../json.ts'

/**
 * Corrects calls that a server refused because of their headers. The schema of a tool determines which arguments are
 * repeated in headers; it may have changed since it was read.
 */
export class HeaderCorrection {
  readonly #request: (method: string, paramsText: string) => Promise<string>
  readonly #pages: number
  /** Calls that have been sent again with corrected headers. */
  readonly #corrected = new WeakSet<Call>()
  #rereading: Promise<void> | undefined

  /** @param request sends `tools/list`, and records the headers of the tools @param pages max pages to read */
  constructor (request: (method: string, paramsText: string) => Promise<string>, pages: number) {
    this.#request = request
    this.#pages = pages
  }

  /**
   * Reads the tools' schemas again (MCP 2026-07-28, "Client Behavior"). The caller can then repeat the call.
   * @returns undefined if the call must not be repeated: it is not a tool call, or has already been repeated
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

import { webcrypto } from 'node:crypto'
import { UpstreamError } from '../../../../protocol/errors.ts'
import type { ServerConfig } from '../../../../schemas/server.ts'
import { limits } from '../../../limits/index.ts'
import { reachOf, type Outbound } from '../../../outbound/outbound.ts'
import { withoutQuery } from '../call/credentials.ts'
import { toHeader } from '../headers.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import { readDescription } from './read.ts'

export interface DescriptionDeps {
  outbound: Outbound
  warn: (sentence: string) => void
  /** It was read again, and is another one. */
  onChange: () => void
}

/** How the document was when it was last read. */
interface Seen { etag: string | undefined, modified: string | undefined, digest: string }

/** The description of one API: read when it is first needed, and again from time to time if it has an address. The last good one stays. */
export class Description {
  readonly #config: ServerConfig
  readonly #deps: DescriptionDeps
  readonly #url: string | undefined
  readonly #ended = new AbortController()
  #current: Promise<CompiledDescription> | undefined
  #seen: Seen | undefined
  #timer: NodeJS.Timeout | undefined
  #warned = ''

  constructor (config: ServerConfig, deps: DescriptionDeps) {
    this.#config = config
    this.#deps = deps
    const { url, openapi } = config
    this.#url = openapi?.schema !== undefined ? undefined : openapi?.url ?? url
  }

  /** @throws UpstreamError in a sentence that says what is wrong, and where */
  async current (): Promise<CompiledDescription> {
    this.#current ??= this.#first()
    return await this.#current
  }

  close (): void {
    this.#ended.abort()
    clearTimeout(this.#timer)
  }

  async #first (): Promise<CompiledDescription> {
    try {
      const { schema } = this.#config.openapi ?? {}
      const compiled = await this.#read(schema ?? await this.#fetch() ?? '')
      this.#again()
      return compiled
    } catch (error) {
      this.#current = undefined
      throw this.#explained(error)
    }
  }

  #explained (error: unknown): unknown {
    const what = this.#url === undefined ? 'the description' : `the description at ${withoutQuery(this.#url)}`
    if (error instanceof DescriptionError) return new UpstreamError('refused', `${what} cannot be used: ${error.message}`)
    return error instanceof UpstreamError ? new UpstreamError(error.fault, `${what} cannot be had: ${error.message}`) : error
  }

  async #read (document: Uint8Array | string | object): Promise<CompiledDescription> {
    const { url, openapi } = this.#config
    const compiled = await readDescription({ document, from: url ?? openapi?.url }, this.#ended.signal)
    for (const warning of compiled.warnings) this.#deps.warn(`its description: ${warning}`)
    return compiled
  }

  /** The document; undefined: it is as it was. */
  async #fetch (): Promise<Uint8Array | undefined> {
    const { url, headers = {}, openapi } = this.#config
    const address = this.#url
    if (address === undefined || !URL.canParse(address)) throw new DescriptionError('its address is not an absolute http or https address')
    // Headers are meant for the API: they go along where the description lives there, too.
    const own =
      openapi?.url === undefined || url === undefined || (URL.canParse(url) && new URL(url).origin === new URL(address).origin)
        ? headers
        : {}
    const { etag, modified } = this.#seen ?? {}
    const { status, headers: got, body } = await this.#deps.outbound.fetch(address, {
      ...reachOf(this.#config),
      headers: {
        accept: 'application/json, application/yaml;q=0.9, */*;q=0.5',
        'user-agent': 'tool-hub',
        ...Object.fromEntries(Object.entries(own).map(([name, value]) => toHeader(name, value))),
        ...etag === undefined ? {} : { 'if-none-match': etag },
        ...modified === undefined ? {} : { 'if-modified-since': modified }
      },
      maxSize: limits.openapi.document,
      timeout: limits.openapi.readTime,
      signal: this.#ended.signal
    })
    if (status === 304 && this.#seen) return undefined
    if (status !== 200) throw new UpstreamError(status === 401 ? 'unauthorized' : 'refused', `its address answered HTTP ${status}`)
    // Not on the event loop: that would be held for long by a large one.
    const digest = Buffer.from(await webcrypto.subtle.digest('SHA-256', body)).toString('base64')
    const same = this.#seen?.digest === digest
    this.#seen = { etag: got.etag, modified: got['last-modified'], digest }
    return same ? undefined : body
  }

  #again (): void {
    const { enableKeepAlive = true, keepAliveInterval = 60_000 } = this.#config
    if (this.#url === undefined || !enableKeepAlive || this.#ended.signal.aborted) return
    this.#timer = setTimeout(() => { void this.#reread().finally(() => { this.#again() }) }, keepAliveInterval)
    this.#timer.unref()
  }

  async #reread (): Promise<void> {
    const before = this.#seen
    try {
      const document = await this.#fetch()
      if (document) this.#current = Promise.resolve(await this.#read(document))
      // Not before it could be read: one that stays broken is told of once.
      this.#warned = ''
      if (!document) return
      this.#deps.onChange()
    } catch (error) {
      if (this.#ended.signal.aborted) return
      this.#seen = before
      const explained = this.#explained(error)
      const sentence = explained instanceof Error ? explained.message : String(explained)
      if (sentence !== this.#warned) this.#deps.warn(`${sentence}; the last good one stays in use`)
      this.#warned = sentence
    }
  }
}

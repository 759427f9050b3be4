import { createHash } from 'node:crypto'
import { messageOf } from '../../../../db/errors.ts'
import { UpstreamError } from '../../../../protocol/errors.ts'
import type { ServerConfig } from '../../../../schemas/server.ts'
import { type Outbound, outboundAccessOf } from '../../../base/outbound/index.ts'
import { withoutQuery } from '../call/credentials.ts'
import { toHeader } from '../http-syntax.ts'
import { DescriptionError, type CompiledDescription } from '../plan.ts'
import { configuredParametersOf } from './configured.ts'
import { readDescription } from './reader.ts'
import { upstreamLimits } from '../../limits.ts'

interface DescriptionDeps {
  outbound: Outbound
  warn: (sentence: string) => void
  /** Called when the description was read again and has changed. */
  onChange: () => void
}

/** The HTTP validators of the document that was fetched last, and the SHA-256 hash of its content in base64. */
interface FetchedVersion { etag: string | undefined, lastModified: string | undefined, digest: string }

/**
 * The OpenAPI description of one API. It is read when it is first needed. If it has a URL, it is read again at each
 * `keepAliveInterval` (unless `enableKeepAlive` is false); if that fails, the last valid version stays in use.
 */
export class ApiDescription {
  readonly #config: ServerConfig
  readonly #deps: DescriptionDeps
  /** The URL of the description; undefined if the configuration contains the description itself. */
  readonly #url: string | undefined
  readonly #closed = new AbortController()
  #current: Promise<CompiledDescription> | undefined
  #fetchedVersion: FetchedVersion | undefined
  #timer: NodeJS.Timeout | undefined
  #lastWarning = ''
  #warnings: readonly string[] = []

  constructor (config: ServerConfig, deps: DescriptionDeps) {
    this.#config = config
    this.#deps = deps
    const { url, openapi } = config
    this.#url = openapi?.schema !== undefined ? undefined : openapi?.url ?? url
  }

  /** Sentences about the parts of the description that were omitted at the last reading, with the reasons. */
  get warnings (): readonly string[] { return this.#warnings }

  /** Returns the compiled description, read on first use. @throws UpstreamError with the reason of the problem */
  async current (): Promise<CompiledDescription> {
    this.#current ??= this.#readFirst()
    return await this.#current
  }

  close (): void {
    this.#closed.abort()
    clearTimeout(this.#timer)
  }

  async #readFirst (): Promise<CompiledDescription> {
    try {
      const { schema } = this.#config.openapi ?? {}
      const text = typeof schema === 'object' ? JSON.stringify(schema) : schema ?? ''
      const compiled = await this.#read(schema === undefined ? await this.#fetch() : Buffer.from(text))
      this.#scheduleRefresh()
      return compiled
    } catch (error) {
      this.#current = undefined
      // Otherwise the next attempt would treat this document, which was not read, as unchanged.
      this.#fetchedVersion = undefined
      throw this.#toUpstreamError(error)
    }
  }

  #toUpstreamError (error: unknown): unknown {
    const url = this.#url
    const isUrl = url !== undefined && URL.canParse(url)
    const subject = isUrl ? `the description at ${withoutQuery(url)}` : 'the description'
    if (error instanceof DescriptionError) {
      return new UpstreamError('refused', `${subject} cannot be used: ${error.message}`)
    }
    return error instanceof UpstreamError
      ? new UpstreamError(error.fault, `${subject} cannot be fetched: ${error.message}`)
      : error
  }

  async #read (document: Uint8Array = Buffer.alloc(0)): Promise<CompiledDescription> {
    const { url, openapi } = this.#config
    const task = { document, baseUrl: url ?? openapi?.url, configured: configuredParametersOf(this.#config) }
    const compiled = await readDescription(task, outboundAccessOf(this.#config), this.#closed.signal)
    this.#warnings = compiled.warnings.map((warning) => `its description: ${warning}`)
    for (const warning of this.#warnings) this.#deps.warn(warning)
    return compiled
  }

  /** Fetches the document. @returns undefined if it has not changed since it was last fetched */
  async #fetch (): Promise<Buffer | undefined> {
    const url = this.#url
    if (url === undefined || !URL.canParse(url)) {
      throw new DescriptionError('its address is not an absolute http or https address')
    }
    const { status, headers, body } = await this.#deps.outbound.fetch(url, {
      ...outboundAccessOf(this.#config),
      headers: this.#requestHeaders(url),
      maxSize: upstreamLimits.openapi.document,
      timeout: upstreamLimits.openapi.readTime,
      signal: this.#closed.signal
    })
    if (status === 304 && this.#fetchedVersion) return undefined
    if (status !== 200) {
      throw new UpstreamError(status === 401 ? 'unauthorized' : 'refused', `its address answered HTTP ${status}`)
    }
    const digest = createHash('sha256').update(body).digest('base64')
    const isUnchanged = this.#fetchedVersion?.digest === digest
    this.#fetchedVersion = { etag: headers.etag, lastModified: headers['last-modified'], digest }
    return isUnchanged ? undefined : body
  }

  #requestHeaders (documentUrl: string): Record<string, string> {
    const { url, headers = {}, openapi } = this.#config
    // The configured headers are meant for the API, so they are not sent to another origin.
    const isApiOrigin =
      openapi?.url === undefined || url === undefined ||
        (URL.canParse(url) && new URL(url).origin === new URL(documentUrl).origin)
    const { etag, lastModified } = this.#fetchedVersion ?? {}
    return {
      accept: 'application/json, application/yaml;q=0.9, */*;q=0.5',
      ...Object.fromEntries(isApiOrigin ? Object.entries(headers).map(([name, value]) => toHeader(name, value)) : []),
      ...(etag === undefined ? {} : { 'if-none-match': etag }),
      ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified })
    }
  }

  #scheduleRefresh (): void {
    const { enableKeepAlive = true, keepAliveInterval = 60_000 } = this.#config
    if (this.#url === undefined || !enableKeepAlive || this.#closed.signal.aborted) return
    this.#timer =
      setTimeout(() => { void this.#refresh().finally(() => { this.#scheduleRefresh() }) }, keepAliveInterval)
    this.#timer.unref()
  }

  async #refresh (): Promise<void> {
    const previousVersion = this.#fetchedVersion
    try {
      const document = await this.#fetch()
      if (document) this.#current = Promise.resolve(await this.#read(document))
      // The warning is forgotten only after a success, so that a document that stays invalid causes one warning.
      this.#lastWarning = ''
      if (document) this.#deps.onChange()
    } catch (error) {
      if (this.#closed.signal.aborted) return
      this.#fetchedVersion = previousVersion
      const reason = this.#toUpstreamError(error)
      const warning = messageOf(reason)
      if (warning !== this.#lastWarning) this.#deps.warn(`${warning}; the last valid one stays in use`)
      this.#lastWarning = warning
    }
  }
}

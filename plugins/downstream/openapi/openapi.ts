import { createHash } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import { plainClient } from '../../../protocol/exchange.ts'
import type { Item } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { type Access, ownerOf, prefixOf, type Principal, type View } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import { ShareError } from '../../base/limits/index.ts'
import type { Gateway, Precedence, Section } from '../../gateway/index.ts'
import { TextCache, type CachedText } from './cache.ts'
import { collectServers, type ListedServer } from './collect.ts'
import { headOf } from './document.ts'
import { notations, type Format } from './notation.ts'
import { TooLarge, translateLarge, writeBody, writeHead, writeServers, type TextPiece } from './write.ts'
import { downstreamLimits } from '../limits.ts'

/** The query of a document. */
interface DocumentQuery {
  title?: string
  description?: string
  version?: string
  serverUrl?: string
  includeDisabled?: boolean
  /** Comma-separated names. */
  servers?: string
}

/** A document as UTF-8, in chunks that other documents share, and its entity tag. */
interface Document { readonly chunks: () => Buffer[], readonly etag: string }

/** How many tools each connected server has. */
interface Stats {
  totalServers: number
  totalTools: number
  serverBreakdown: Array<{ name: string; toolCount: number; status: string }>
}

interface OpenApiDeps {
  snapshot: () => Snapshot
  access: Pick<Access, 'open'>
  gateway: Pick<Gateway, 'sections' | 'precedence'>
  /** The public base where it is configured, else the base path. */
  base: () => string
}

/** The longest `serverUrl`, in bytes. */
const longestUrl = 2_048

/** The estimated characters of an operation beside the text of its tool. */
const operationSize = 700

/** The size of a chunk, in characters. */
const chunkSize = 64 * 1024

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** OpenAPI documents of the tools that callers of the open routes may run. */
export class OpenApi {
  readonly #deps: OpenApiDeps
  readonly #bodies =
    new TextCache(
      {
        maxTexts: downstreamLimits.documents,
        maxSize: downstreamLimits.documentsSize,
        maxPending: downstreamLimits.documentsWaiting
      }
    )

  constructor (deps: OpenApiDeps) {
    this.#deps = deps
  }

  /**
   * The OpenAPI 3.0.3 document of everything that a caller may run, or of one group or server.
   * It describes the state at the time of the call.
   * @param address the address of the caller
   * @param hold takes memory for the document, in bytes, before it is written; throws if there is none
   * @throws NoSuch, InvalidInput, NotFound; ShareError, also for a document beyond `downstreamLimits.documentSize`
   */
  async document (
    principal: Principal,
    name: string | undefined,
    query: DocumentQuery,
    format: Format,
    address: string,
    hold: (bytes: number) => void = () => {}
  ): Promise<Document> {
    const view = this.#deps.access.open(principal, { name }, 'group or server')
    const { scope } = view
    const serverUrl = query.serverUrl === undefined ? this.#base() : checkedUrl(query.serverUrl)
    const head = headOf({
      title: query.title ?? (scope.kind === 'global' ? 'Tool-Hub' : scope.name),
      description: query.description ?? `Tools of ${describedScope(scope)}, to be called over plain HTTP.`,
      version: query.version ?? '1.0.0',
      serverUrl
    })
    const wanted = name === undefined &&
      query.servers
      ? new Set(query.servers.split(',').map((each) => each.trim()))
      : undefined
    const listed = this.#listed(view)
    const servers = listed.servers.filter((each) => wanted?.has(each.name) ?? true)
    const disabled = query.includeDisabled === true
    const expected = expectedSize(servers, disabled)
    if (expected > downstreamLimits.documentSize) throw tooLarge()
    hold(expected)
    const isAuthenticated = principal.kind !== 'anonymous'
    const owner = ownerOf(principal, address)
    // Names and catalogues say what is connected; overrides and selections belong to the settings' version.
    const key = JSON.stringify([
      view.key,
      this.#deps.snapshot().version,
      format,
      disabled,
      isAuthenticated,
      servers.map((each) => [each.name, each.catalogue]),
      listed.contested
    ])
    const { chunks, hash, isTooLarge } = await this.#bodies.get(
      key,
      async () => {
        const large = await translateLarge(servers, disabled, format, owner)
        return await joined(
          writeBody({ servers, disabled, inGroup: scope.kind === 'group', isAuthenticated, large }, format)
        )
      },
      owner
    )
    if (isTooLarge === true) throw tooLarge()
    const start = writeHead(head, notations[format])
    const reached =
      scope.kind === 'group'
        ? Buffer.from(
          writeServers(`${serverUrl.replace(/\/$/, '')}/${encodeURIComponent(scope.id)}`, notations[format])
        )
        : Buffer.alloc(0)
    const whole = (): Buffer[] =>
      [Buffer.from(start), ...chunks.map((chunk) => chunk ?? reached)].filter(({ length }) => length > 0)
    return { chunks: whole, etag: `"${hashOf(start + hash)}"` }
  }

  /** The names of the connected servers that a caller reaches, in the order of configuration. @throws NotFound */
  servers (principal: Principal): string[] {
    return this.#listed(this.#all(principal)).servers.map(({ name }) => name)
  }

  /** How many tools a caller may run. @throws NotFound */
  stats (principal: Principal): Stats {
    const serverBreakdown = this.#listed(this.#all(principal)).servers.map(({ name, status, items, toTool }) => ({
      name,
      toolCount: items.filter((item) => toTool(item)?.enabled).length,
      status
    }))
    return {
      totalServers: serverBreakdown.length,
      totalTools: serverBreakdown.reduce((sum, { toolCount }) => sum + toolCount, 0),
      serverBreakdown
    }
  }

  #all (principal: Principal): View { return this.#deps.access.open(principal, {}, 'server') }

  /** The servers of a view. `contested`: the catalogues of servers whose tools could have the same operationIds. */
  #listed (view: View): {
    servers: ListedServer[], contested: ReadonlyArray<readonly [name: string, catalogue: number | undefined]>
  } {
    const sections = this.#deps.gateway.sections(view, plainClient)
    const contested = contestedOf(sections.map(({ server }) => server.name))
    const hasPlainId = this.#plainIds(sections)
    return {
      contested: sections.flatMap(({ server: { name }, catalogue }) =>
        contested.has(name) ? [[name, catalogue?.id] as const] : []),
      servers: collectServers(sections, (name, at) => contested.has(name) ? (key) => hasPlainId(at, key) : undefined)
    }
  }

  /**
   * Decides which tool has a contested operationId, by the rule for tool names on merged routes: an id keeps its
   * meaning while a server is away, and when others list new tools.
   */
  #plainIds (sections: readonly Section[]): (at: number, key: string) => boolean {
    let precedence: Precedence | undefined
    return (at, key) => {
      precedence ??= this.#deps.gateway.precedence(sections.map((each) => ({ ...each, label: each.server.name })), '_')
      return precedence.plainName(at, 'tools', key) !== 'lost'
    }
  }

  /** The base URL of the operations, from the configuration and never from a request. */
  #base (): string {
    return `${this.#deps.base()}/api`
  }
}

/** The servers whose prefix of operationIds begins with the prefix of another one, with those others. */
function contestedOf (names: readonly string[]): Set<string> {
  const byPrefix = new Map<string, Set<string>>()
  for (const name of names) {
    const prefix = prefixOf(name, '_')
    byPrefix.set(prefix, (byPrefix.get(prefix) ?? new Set()).add(name))
  }
  const contested = new Set<string>()
  for (const [prefix, own] of byPrefix) {
    for (let end = prefix.indexOf('_', 1) + 1; end !== 0; end = prefix.indexOf('_', end) + 1) {
      const others = byPrefix.get(prefix.slice(0, end))
      if (others && (others !== own || own.size > 1)) for (const name of [...own, ...others]) contested.add(name)
    }
  }
  return contested
}

const describedScope = (scope: View['scope']): string =>
  scope.kind === 'global' ? 'the MCP servers behind this gateway' : `the ${scope.kind} ${scope.name}`

/** The estimated size of a document, in characters. */
function expectedSize (servers: readonly ListedServer[], disabled: boolean): number {
  const sizeOf = ({ text }: Item): number => text.length + operationSize
  const all = servers.reduce((sum, { items }) => items.reduce((sum, item) => sum + sizeOf(item), sum), 0)
  if (all <= downstreamLimits.documentSize) return all
  // Excludes the tools that are not shown, as far as that is known without reading their texts.
  return servers.reduce((sum, { items, mayShow }) =>
    items.reduce((sum, item) => mayShow?.(item, disabled) === false ? sum : sum + sizeOf(item), sum), 0)
}

const tooLarge = (): ShareError => new ShareError(
  `The document would have more than ${downstreamLimits.documentSize / 1024 / 1024} MiB; name some of the servers ` +
  'with ?servers=, or ask for ' +
  'those of one server or group',
  false
)

/** Joins the pieces of a text to few chunks; none if the text exceeds the size of a document. */
async function joined (pieces: Iterable<TextPiece>): Promise<CachedText> {
  try {
    return await chunksOf(pieces)
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error
    return { chunks: [], hash: '', isTooLarge: true }
  }
}

/** @throws TooLarge */
async function chunksOf (pieces: Iterable<TextPiece>): Promise<CachedText> {
  const hash = createHash('sha256')
  const chunks: Array<Buffer | undefined> = []
  const budget = new LoopBudget()
  let waiting = ''
  let size = 0
  const take = (): void => {
    const chunk = Buffer.from(waiting)
    size += chunk.length
    if (size > downstreamLimits.documentSize) throw new TooLarge()
    hash.update(chunk)
    chunks.push(chunk)
    waiting = ''
  }
  for (const { text, rest } of pieces) {
    waiting += text
    if (rest !== undefined) {
      take()
      chunks.push(undefined)
      waiting = rest
    }
    if (waiting.length >= chunkSize) take()
    if (budget.spent) await budget.yieldToEventLoop()
  }
  take()
  return { chunks, hash: hash.digest('base64url') }
}

/** Checks a `serverUrl`. @throws InvalidInput */
function checkedUrl (text: string): string {
  const url =
    Buffer.byteLength(text) <= longestUrl && /^https?:\/\/[^\s{}\\]+$/i.test(text) &&
      URL.canParse(text)
      ? new URL(text)
      : undefined
  if (!url || url.username !== '' || url.password !== '') {
    throw new errors.InvalidInput('serverUrl must be an absolute http or https address without a user name, of at ' +
      `most ${longestUrl} bytes`)
  }
  return text
}

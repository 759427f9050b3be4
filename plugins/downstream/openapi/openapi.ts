import { createHash } from 'node:crypto'
import type { Snapshot } from '../../../db/store.ts'
import { gatewayClient } from '../../../protocol/exchange.ts'
import type { Item } from '../../../protocol/lists.ts'
import { type Access, chargedOwnerOf, prefixOf, type Principal, type View } from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import { ShareError } from '../../base/limits/index.ts'
import type { Gateway, Precedence, Section } from '../../gateway/index.ts'
import { DocumentCache } from './cache.ts'
import { collectServers, type ListedServer } from './collect.ts'
import type { Format } from './notation.ts'
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
  access: Pick<Access, 'viewOfOpenRoute'>
  gateway: Pick<Gateway, 'sections' | 'precedence' | 'filteredView'>
  /** The public base where it is configured, else the base path. */
  base: () => string
}

/** Max length of `serverUrl`, in bytes. */
const maxUrlLength = 2_048

/** The estimated size of an operation beyond the text of its tool, in characters. */
const operationSize = 700

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** OpenAPI documents of the tools that callers of the open routes may run. */
export class OpenApi {
  readonly #deps: OpenApiDeps
  readonly #bodies =
    new DocumentCache(
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
   * The OpenAPI 3.0.3 document of everything that a caller may run, or of one group or server, at the time of the call.
   * @param address the address of the caller
   * @param hold reserves memory for the document, in bytes, before it is written; throws if there is none
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
    const route = this.#deps.access.viewOfOpenRoute(principal, { name }, 'group or server')
    const view = this.#deps.gateway.filteredView(route, address)
    const { scope } = view
    const serverUrl = query.serverUrl === undefined ? this.#base() : checkUrl(query.serverUrl)
    const wanted = name === undefined &&
      query.servers
      ? new Set(query.servers.split(',').map((each) => each.trim()))
      : undefined
    const listed = this.#listed(view)
    const servers = listed.servers.filter((each) => wanted?.has(each.name) ?? true)
    const disabled = query.includeDisabled === true
    const expected = expectedSize(servers, disabled)
    if (expected > downstreamLimits.documentSize) throw tooLargeError()
    hold(expected)
    const isAuthenticated = principal.kind !== 'anonymous'
    const owner = chargedOwnerOf(principal, address)
    // Names and catalogues identify what is connected; overrides and selections are part of the settings' version.
    const key = JSON.stringify([
      view.key,
      this.#deps.snapshot().version,
      format,
      disabled,
      isAuthenticated,
      servers.map((each) => [each.name, each.catalogue]),
      listed.contested
    ])
    // What the document is about has been read by now: the document is of the time of the call.
    const { documentHead, joinPieces, notations, translateLarge, writeBody, writeHead, writeServers } =
      await import('./text.ts')
    const { chunks, hash, isTooLarge } = await this.#bodies.get(
      key,
      async () => {
        const large = await translateLarge(servers, disabled, format, owner)
        return await joinPieces(
          writeBody(
            { servers, includesDisabled: disabled, isForGroup: scope.kind === 'group', isAuthenticated, large },
            format
          )
        )
      },
      owner
    )
    if (isTooLarge === true) throw tooLargeError()
    const head = documentHead({
      title: query.title ?? (scope.kind === 'global' ? 'Tool-Hub' : scope.name),
      description: query.description ?? `Tools of ${describeScope(scope)}, to be called over plain HTTP.`,
      version: query.version ?? '1.0.0',
      serverUrl
    })
    const start = writeHead(head, notations[format])
    const groupServers =
      scope.kind === 'group'
        ? Buffer.from(
          writeServers(`${serverUrl.replace(/\/$/, '')}/${encodeURIComponent(scope.id)}`, notations[format])
        )
        : Buffer.alloc(0)
    const allChunks = (): Buffer[] =>
      [Buffer.from(start), ...chunks.map((chunk) => chunk ?? groupServers)].filter(({ length }) => length > 0)
    return { chunks: allChunks, etag: `"${hashOf(start + hash)}"` }
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

  #all (principal: Principal): View { return this.#deps.access.viewOfOpenRoute(principal, {}, 'server') }

  /** The servers of a view. `contested`: the catalogues of servers whose tools could have the same operationIds. */
  #listed (view: View): {
    servers: ListedServer[], contested: ReadonlyArray<readonly [name: string, catalogue: number | undefined]>
  } {
    const sections = this.#deps.gateway.sections(view, gatewayClient)
    const contested = findContested(sections.map(({ server }) => server.name))
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
      return precedence.plainNameStanding(at, 'tools', key) !== 'lost'
    }
  }

  /** The base URL of the operations, from the configuration and never from a request. */
  #base (): string {
    return `${this.#deps.base()}/api`
  }
}

/** The servers whose operationId prefix begins with the prefix of another server, and those other servers. */
function findContested (names: readonly string[]): Set<string> {
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

const describeScope = (scope: View['scope']): string =>
  scope.kind === 'global' ? 'the MCP servers behind this gateway' : `the ${scope.kind} ${scope.name}`

/** The estimated size of a document, in characters. */
function expectedSize (servers: readonly ListedServer[], disabled: boolean): number {
  const sizeOf = ({ text }: Item): number => text.length + operationSize
  const all = servers.reduce((sum, { items }) => items.reduce((sum, item) => sum + sizeOf(item), sum), 0)
  if (all <= downstreamLimits.documentSize) return all
  // Excludes the tools that are not shown, as far as that is known without reading their texts.
  return servers.reduce((sum, { items, canShow }) =>
    items.reduce((sum, item) => canShow?.(item, disabled) === false ? sum : sum + sizeOf(item), sum), 0)
}

const tooLargeError = (): ShareError => new ShareError(
  `The document would have more than ${downstreamLimits.documentSize / 1024 / 1024} MiB; name some of the servers ` +
  'with ?servers=, or ask for ' +
  'those of one server or group',
  false
)

/** Checks a `serverUrl`. @throws InvalidInput */
function checkUrl (text: string): string {
  const url =
    Buffer.byteLength(text) <= maxUrlLength && /^https?:\/\/[^\s{}\\]+$/i.test(text) &&
      URL.canParse(text)
      ? new URL(text)
      : undefined
  if (!url || url.username !== '' || url.password !== '') {
    throw new errors.InvalidInput('serverUrl must be an absolute http or https address without a user name, of at ' +
      `most ${maxUrlLength} bytes`)
  }
  return text
}

import type { Static } from '@sinclair/typebox'
import { createHash } from 'node:crypto'
import { gatewayClient } from '../../../protocol/exchange.ts'
import type { DocumentQuery, ToolStats } from '../../../schemas/openapi-routes.ts'
import {
  type Access, alternativeName, chargedOwnerOf, exposedName, prefixOf, type Principal, type View
} from '../../settings/index.ts'
import { errors } from '../../base/errors/index.ts'
import { BoundedMap, memoryBudget, ShareError } from '../../base/limits/index.ts'
import { TaskAborted, WorkerPool } from '../../base/threads/index.ts'
import type { Gateway, Precedence, ViewSection } from '../../gateway/index.ts'
import { collectServers, type ListedServer } from './collect.ts'
import type { DocumentFormat, DocumentInput } from './document.ts'
import type { WrittenDocument } from './worker.ts'
import { downstreamLimits } from '../limits.ts'

/** An OpenAPI document as UTF-8, and its entity tag. */
interface Document { readonly bytes: Buffer, readonly etag: string }

/** The number of tools, in total and by server. */
type Stats = Static<typeof ToolStats>['data']

interface OpenApiDeps {
  access: Pick<Access, 'viewOfOpenRoute'>
  gateway: Pick<Gateway, 'sections' | 'precedence' | 'filteredView'>
  /** Returns the configured public base URL or, if there is none, the base path. */
  base: () => string
}

/** Max length of `serverUrl`, in bytes. */
const maxUrlLength = 2_048

/** The estimated size of an operation in addition to the text of its tool, in characters. */
const operationSize = 700

/** The memory that writing a document takes, in bytes per byte of the document: it is copied to a thread and back. */
const writingCost = 4

/** Creates OpenAPI documents of the tools that callers of the open routes may run. */
export class OpenApiDocuments {
  readonly #deps: OpenApiDeps
  readonly #pool = new WorkerPool(downstreamLimits.documents)
  /** Documents that are being written, and recent small ones. */
  readonly #documents = new BoundedMap<string, Promise<Document>>(downstreamLimits.documents.kept)

  constructor (deps: OpenApiDeps) {
    this.#deps = deps
  }

  /**
   * Returns the OpenAPI 3.0.3 document of all tools that a caller may run now, or of those of one group or server. With
   * `query.includeDisabled`, it includes disabled tools.
   * @param name the name of the group or server; undefined for all tools
   * @param address the caller's IP address
   * @param hold reserves memory for the document, in bytes, before it is written; throws if too little is free
   * @throws NoSuch, InvalidInput, NotFound; ShareError, also for a document beyond `downstreamLimits.documentSize`
   */
  async document (
    principal: Principal,
    name: string | undefined,
    query: Static<typeof DocumentQuery>,
    format: DocumentFormat,
    address: string,
    hold: (bytes: number) => void = () => {}
  ): Promise<Document> {
    const route = this.#deps.access.viewOfOpenRoute(principal, { name }, 'group or server')
    const view = this.#deps.gateway.filteredView(route, address)
    const { scope } = view
    const serverUrl = query.serverUrl === undefined ? this.#base() : checkUrl(query.serverUrl)
    const wanted = name === undefined && query.servers
      ? new Set(query.servers.split(',').map((each) => each.trim()))
      : undefined
    const listed = this.#listed(view).filter((each) => wanted?.has(each.name) ?? true)
    const { servers, contents } = describeServers(listed, query.includeDisabled === true)
    const input: DocumentInput = {
      format,
      title: query.title ?? (scope.kind === 'global' ? 'Tool-Hub' : scope.name),
      about: query.description ?? `Tools of ${describeScope(scope)}, to be called over plain HTTP.`,
      version: query.version ?? '1.0.0',
      serverUrl,
      ...(scope.kind === 'group' && {
        operationUrl: `${serverUrl.replace(/\/$/, '')}/${encodeURIComponent(scope.id)}`
      }),
      isAuthenticated: principal.kind !== 'anonymous',
      isBrief: false,
      servers
    }
    const expected = expectedSize(input)
    if (expected > downstreamLimits.documentSize) throw tooLargeError()
    const identity = JSON.stringify([{ ...input, servers: [] }, contents])
    const key = createHash('sha256').update(identity).digest('base64url')
    const known = this.#documents.get(key)
    // With a small budget, a document that is alone can still be written.
    hold(known ? expected : Math.max(expected, Math.min(expected * writingCost, memoryBudget.max / 4)))
    return await (known ?? this.#write(key, input, chargedOwnerOf(principal, address)))
  }

  /** Ends the thread that writes documents. */
  close (): void { this.#pool.close() }

  /**
   * Writes a document, and caches it under a key. If that takes too much time or memory, it is written again, with
   * large tools described briefly.
   * @param owner the owner to whom the writing is charged
   * @throws ShareError
   */
  async #write (key: string, input: DocumentInput, owner: string): Promise<Document> {
    const writing = this.#run(input, owner, true)
      .catch(async (error: unknown) => {
        if (!(error instanceof TaskAborted)) throw error
        return await this.#run({ ...input, isBrief: true }, owner, false)
      })
      .catch((error: unknown) => { throw error instanceof TaskAborted ? tooLargeError() : error })
    this.#documents.set(key, writing)
    const forget = (): void => { if (this.#documents.get(key) === writing) this.#documents.delete(key) }
    writing.then(({ bytes }) => { if (bytes.length > downstreamLimits.documents.keptSize) forget() }, forget)
    return await writing
  }

  /**
   * Writes a document in a worker thread.
   * @param isMeasured whether the task is refused if the values that the thread parses would take too much memory
   * @throws TaskAborted; ShareError, also if the document becomes too large
   */
  async #run (input: DocumentInput, owner: string, isMeasured: boolean): Promise<Document> {
    const { time } = downstreamLimits.documents
    const task = (): string => JSON.stringify(input)
    const { bytes, hash } =
      await this.#pool.run<WrittenDocument>('plugins/downstream/openapi/worker', task, { owner, time, isMeasured })
    if (bytes.length > downstreamLimits.documentSize) throw tooLargeError()
    return { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), etag: `"${hash}"` }
  }

  /** Returns the names of the servers that a caller may use now, in configured order. @throws NotFound */
  servers (principal: Principal): string[] {
    return this.#listed(this.#all(principal)).map(({ name }) => name)
  }

  /** Returns the number of tools that a caller may run, in total and by server. @throws NotFound */
  stats (principal: Principal): Stats {
    const serverBreakdown = this.#listed(this.#all(principal)).map(({ name, status, items, toTool }) => ({
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

  #listed (view: View): ListedServer[] {
    const sections = this.#deps.gateway.sections(view, gatewayClient)
    const contested = findContested(sections.map(({ server }) => server.name))
    const hasPlainId = this.#plainIds(sections)
    return collectServers(sections, (name, at) => contested.has(name) ? (key) => hasPlainId(at, key) : undefined)
  }

  /**
   * Returns a function that decides whether a tool gets a contested operationId, by the rule for tool names on merged
   * routes: an id keeps its meaning while a server is disconnected, and when other servers list new tools.
   */
  #plainIds (sections: readonly ViewSection[]): (at: number, key: string) => boolean {
    let precedence: Precedence | undefined
    return (at, key) => {
      precedence ??= this.#deps.gateway.precedence(sections.map((each) => ({ ...each, label: each.server.name })), '_')
      return precedence.plainNameStanding(at, 'tools', key) !== 'lost'
    }
  }

  /** Returns the base URL of the operations, which comes from the configuration and never from a request. */
  #base (): string {
    return `${this.#deps.base()}/api`
  }
}

/**
 * Returns the names of the servers whose operationIds may collide: two servers may if the prefix of one starts with the
 * prefix of the other.
 */
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

/** A number for each item, unique within this process. */
const itemNumbers = new WeakMap<object, number>()
let lastNumber = 0

function numberOf (item: object): number {
  const number = itemNumbers.get(item) ?? ++lastNumber
  itemNumbers.set(item, number)
  return number
}

/**
 * Returns the visible tools of servers, with their operationIds. `contents`: what determines them, with a number in
 * place of each tool's text, which may have megabytes in all.
 */
function describeServers (
  listed: readonly ListedServer[], includesDisabled: boolean
): { servers: DocumentInput['servers'], contents: unknown[] } {
  const ids = new Set<string>()
  const contents: unknown[] = []
  const servers = listed.map(({ name, description, items, toTool, hasPlainId }) => {
    contents.push([name, description])
    const tools = items.flatMap((item) => {
      const tool = toTool(item)
      if (!tool || !(tool.enabled || includesDisabled)) return []
      const { key, text } = tool.item
      const operationId = uniqueId(name, key, hasPlainId?.(key) ?? true, ids)
      contents.push(numberOf(tool.item), tool.description, operationId)
      return [{ key, text, description: tool.description, operationId }]
    })
    return { name, description, tools }
  })
  return { servers, contents }
}

/**
 * Returns the operationId of a tool: `<server>_<tool>` in the characters that model APIs accept, with a hash if another
 * tool has that id.
 * @param isPlain false if a tool of another server, even one outside the document, has the id without a hash
 * @param taken the ids so far, to which the new one is added
 */
function uniqueId (server: string, tool: string, isPlain: boolean, taken: Set<string>): string {
  const base = exposedName(server, '_', tool)
  let id = isPlain ? base : alternativeName(base, `${server}\n${tool}`)
  for (let salt = ''; taken.has(id); salt += '.') id = alternativeName(base, `${salt}${server}\n${tool}`)
  taken.add(id)
  return id
}

/** Returns the estimated size of a document, in characters. */
const expectedSize = ({ servers }: DocumentInput): number => servers.reduce((sum, { tools }) =>
  tools.reduce((sum, { text }) => sum + text.length + operationSize, sum), 0)

const tooLargeError = (): ShareError => new ShareError(
  `The document would have more than ${downstreamLimits.documentSize / 1024 / 1024} MiB; name some of the servers ` +
  'with ?servers=, or ask for those of one server or group',
  false
)

/** Checks a `serverUrl`. @throws InvalidInput */
function checkUrl (text: string): string {
  const url =
    Buffer.byteLength(text) <= maxUrlLength && /^https?:\/\/[^\s{}\\]+$/i.test(text) && URL.canParse(text)
      ? new URL(text)
      : undefined
  if (!url || url.username !== '' || url.password !== '') {
    throw new errors.InvalidInput('serverUrl must be an absolute http or https address without a user name, of at ' +
      `most ${maxUrlLength} bytes`)
  }
  return text
}

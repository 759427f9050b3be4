import type { Caching, Freshness } from '../../../protocol/caching.ts'
import { removeInvalidCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError, UpstreamError } from '../../../protocol/errors.ts'
import { gatewayName, instanceId, instanceMetaKey } from '../../../protocol/instance.ts'
import { parseSmallMember, withMembers } from '../../../protocol/json.ts'
import {
  type Catalogue, type Item, allListKinds, declaresList, type ListKind, listKinds, nextCatalogueId
} from '../../../protocol/lists.ts'
import { truncate } from '../../../protocol/text.ts'
import type { ServerIdentity } from '../../../protocol/upstream-session.ts'
import { waitAtMost } from '../../../protocol/wait-at-most.ts'
import { type ListRead, readList } from './read-list.ts'
import { upstreamLimits } from '../limits.ts'

/** Max warnings about invalid capabilities for each reading. */
const maxProblems = 10

/** A connection that lists can be read from. */
export interface ListConnection {
  readonly key: { readonly capabilityClass: string }
  readonly identity: ServerIdentity
  readonly closed?: boolean
  /** Sends a request; resolves to the result, as JSON text. @throws RpcError, UpstreamError */
  request: (method: string, paramsText: string) => Promise<string>
}

/** The result of reading one list. `failure`: why the list (without `items`), or its later pages, could not be read. */
type ListReading = Partial<ListRead>

/**
 * Reads all lists of an upstream. If a list or its later pages cannot be read, its former items are kept.
 * @param before the catalogue that was read before; undefined if there is none
 * @param known a catalogue in memory: items that are listed again are reused; undefined: nothing is reused
 * @param maxSize max memory of each list, in bytes
 * @param timeout max time to wait for the other lists once the first list has been read, in ms
 * @param undeclared reads the tools of a server that does not declare tools
 * @param warn called with a sentence for each failure and each omission
 * @returns `isComplete`: whether all lists were read completely; `fresh`: how long each list may be cached
 * @throws UpstreamError if no list can be read, or the connection has ended
 */
export async function readCatalogue (
  link: ListConnection,
  before: Catalogue | undefined,
  known: Catalogue | undefined,
  maxSize: number,
  timeout: number,
  undeclared: UndeclaredToolsReader,
  warn: (sentence: string) => void
): Promise<{ catalogue: Catalogue, isComplete: boolean, fresh: Freshness }> {
  const learnedAt = Date.now()
  const { key: { capabilityClass }, identity } = link
  const { capabilities, problems } = removeInvalidCapabilities(identity.capabilities)
  for (const sentence of problems.slice(0, maxProblems)) warn(sentence)
  const isDeclared = (kind: ListKind): boolean => declaresList(capabilities, kind)
  const listed = allListKinds.filter((kind) => isDeclared(kind) || (kind === 'tools' && undeclared.isWorthAsking))
  const read = async (kind: ListKind): Promise<ListReading> => isDeclared(kind)
    ? await readOne(link, kind, maxSize, warn, known?.lists[kind])
    : await undeclared.read(
      async () => await readFrom(link, kind, maxSize, warn, known?.lists[kind]), () => link.closed === true
    )
  const readings = await readAll(listed.map(read), timeout)
  const lists = {} as Record<ListKind, readonly Item[]>
  const extras = {} as Record<ListKind, string>
  const fresh: Partial<Record<ListKind, Caching>> = {}
  let isComplete = true
  for (const kind of allListKinds) {
    const at = listed.indexOf(kind)
    const reading: ListReading = at === -1 ? { items: [], extra: '{}' } : readings[at] ?? { failure: 'no answer yet' }
    const { items, extra, caching, failure } = reading
    const former = before?.lists[kind] ?? []
    if (failure !== undefined) {
      isComplete = false
      if (items === undefined) warn(`${listKinds[kind].method} failed: ${failure}`)
    }
    lists[kind] = items === undefined ? former : failure === undefined ? items : withFormer(items, former)
    extras[kind] = extra ?? before?.extras[kind] ?? '{}'
    if (caching) fresh[kind] = caching
  }
  if (!isDeclared('tools')) {
    const sentence = undeclared.sentence(lists.tools.length, isDeclared('prompts') || isDeclared('resources'))
    if (sentence !== undefined) warn(sentence)
    if (lists.tools.length > 0) capabilities.tools = {}
  }
  const instructions = identity.instructions === undefined
    ? undefined
    : truncate(identity.instructions, upstreamLimits.instructions)
  if (instructions !== identity.instructions) {
    warn(`its instructions are longer than ${upstreamLimits.instructions} characters and were truncated`)
  }
  const { identityExtra = '{}' } = identity
  const isExtraLong = identityExtra.length > upstreamLimits.instructions
  if (isExtraLong) {
    warn(`unknown members of its identity are longer than ${upstreamLimits.instructions} characters and were omitted`)
  }
  const catalogue = {
    id: nextCatalogueId(),
    capabilityClass,
    ...identity,
    capabilities,
    instructions,
    identityExtra: isExtraLong ? '{}' : identityExtra,
    lists,
    extras
  }
  return { catalogue, isComplete, fresh: { learnedAt, lists: fresh } }
}

/** Returns the items that were read, and the former items that may be on the pages that could not be read. */
function withFormer (items: readonly Item[], former: readonly Item[]): readonly Item[] {
  const read = new Set(items.map(({ key }) => key))
  return [...items, ...former.filter(({ key }) => !read.has(key))]
}

/**
 * Waits until each list is read, has failed, or is too late.
 * @param timeout max time to wait for the other lists once the first list has been read, in ms
 * @returns the readings, in the same order; undefined for a list that failed or took too long
 * @throws UpstreamError if no list can be read, or the connection has ended
 */
async function readAll (
  reading: ReadonlyArray<Promise<ListReading>>, timeout: number
): Promise<Array<ListReading | undefined>> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    const begin = (): void => { timer ??= setTimeout(() => { resolve(undefined) }, timeout).unref() }
    for (const each of reading) each.then(begin, () => {})
  })
  const outcomes = await Promise.allSettled(reading.map(async (each) => await Promise.race([each, late])))
  clearTimeout(timer)
  const failures = outcomes.flatMap((outcome) => outcome.status === 'rejected' ? [outcome.reason as unknown] : [])
  const gone = failures.find((error) => !(error instanceof UpstreamError && error.fault === 'timeout'))
  if (gone !== undefined || (failures.length > 0 && failures.length === outcomes.length)) throw gone ?? failures[0]
  return outcomes.map((outcome) => outcome.status === 'fulfilled' ? outcome.value : undefined)
}

/**
 * Reads one declared list. If the server does not know the method, the list is empty: for example, a server that
 * declares resources need not have templates.
 */
async function readOne (
  link: ListConnection, kind: ListKind, maxSize: number, warn: (sentence: string) => void, known?: readonly Item[]
): Promise<ListReading> {
  try {
    return await readFrom(link, kind, maxSize, warn, known)
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return error.code === rpcCode.methodNotFound ? { items: [], extra: '{}' } : { failure: error.message }
  }
}

/** Reads all pages of one list. @throws RpcError; UpstreamError, also if the connection ends before the last page */
async function readFrom (
  link: ListConnection, kind: ListKind, maxSize: number, warn: (sentence: string) => void, known?: readonly Item[]
): Promise<ListRead> {
  const isGateway = parseSmallMember(link.identity.serverInfo, 'name') === gatewayName
  const mark = isGateway ? { _meta: JSON.stringify({ [instanceMetaKey]: instanceId }) } : {}
  const request = async (method: string, params: string): Promise<string> =>
    await link.request(method, withMembers(params, mark))
  const list = await readList(kind, request, warn, maxSize, known)
  if (list.failure !== undefined && link.closed === true) throw new UpstreamError('broken', list.failure)
  return list
}

/** Number of consecutive connection failures after which undeclared tools are not requested again. */
const maxLosses = 3
const emptyList = { items: [], extra: '{}', caching: undefined }

/**
 * Reads the tools of one server that does not declare tools, since some servers list them nevertheless. If the server
 * lists tools, it is asked again at each reading. If it answers with an error or not at all, or its connection ends
 * because of the request, it is not asked again. Failed transfers on a connection that stays are retried (`maxLosses`).
 */
export class UndeclaredToolsReader {
  /** The reason why the server has no tools, as a clause; undefined if it lists tools, or has not been asked yet. */
  #refusal: string | undefined
  #isMethodUnknown = false
  /** The number of consecutive connection failures during the request: they do not show whether there are tools. */
  #losses = 0

  get isWorthAsking (): boolean { return this.#refusal === undefined || (this.#losses > 0 && this.#losses < maxLosses) }

  /**
   * Reads the tools.
   * @param read requests the list
   * @param isGone whether the connection has ended
   * @returns an empty list if the server answers with an error or not at all
   * @throws UpstreamError if the connection has ended
   */
  async read (read: () => Promise<ListRead>, isGone: () => boolean): Promise<ListRead> {
    this.#refusal = 'its connection ended when they were requested'
    try {
      const list = await waitAtMost(upstreamLimits.undeclaredTools, read())
      this.#refusal = list ? undefined : 'it does not answer tools/list'
      this.#losses = 0
      return list ?? emptyList
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof UpstreamError) || isGone()) {
        this.#losses = 0
        throw error
      }
      this.#isMethodUnknown = error instanceof RpcError && error.code === rpcCode.methodNotFound
      const isLost = error instanceof UpstreamError && error.fault === 'broken' && error.status === undefined
      this.#refusal = isLost
        ? `tools/list failed: ${error.message}`
        : `it answered tools/list with an error: ${error.message}`
      this.#losses = isLost ? this.#losses + 1 : 0
      return isLost && this.isWorthAsking ? { ...emptyList, failure: error.message } : emptyList
    }
  }

  /**
   * Returns a warning about the undeclared or missing tools; undefined if none is needed.
   * @param count the number of tools that the server lists
   * @param hasOthers whether the server declares prompts or resources
   */
  sentence (count: number, hasOthers: boolean): string | undefined {
    if (count > 0) return 'it lists tools without declaring the capability: they are included'
    if (hasOthers && (this.#refusal === undefined || this.#isMethodUnknown)) return undefined
    return `it does not declare tools: ${this.#refusal ?? 'its list is empty'}`
  }
}

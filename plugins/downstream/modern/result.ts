import { cachingOf, strictestCaching, type Caching } from '../../../protocol/caching.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import { memberOf, membersOf, withMembers, smallMemberOf } from '../../../protocol/json.ts'
import { metaKeys, type ResultType } from '../../../protocol/modern/envelope.ts'
import type { List, ListEntry } from '../../gateway/index.ts'
import { gatewayLimits } from '../../gateway/index.ts'

// The members that each modern result has beside its own: `resultType`, `serverInfo`, and for some results caching. All
// texts are JSON, and unchanged members keep their bytes.

const notKept: Caching = { ttlMs: 0, isPublic: false }

/**
 * The beginning of a result's text, before a comma or the closing brace.
 * @param serverInfo as JSON text; undefined: the server does not state it
 */
export const resultHead = (type: ResultType, serverInfo: string | undefined): string =>
  `{"resultType":"${type}"${serverInfo === undefined ? '' : `,"_meta":{"${metaKeys.serverInfo}":${serverInfo}}`}`

const cachingText = ({ ttlMs, isPublic }: Caching): string =>
  `"ttlMs":${ttlMs},"cacheScope":"${isPublic ? 'public' : 'private'}"`

/** How a result may be cached. A public result of a server is public only on a route without authentication. */
const kept = (said: Caching | undefined, isOpen: boolean): Caching =>
  said ? { ttlMs: Math.min(said.ttlMs, gatewayLimits.freshLists.most), isPublic: said.isPublic && isOpen } : notKept

/** How a merged list may be cached. @param all undefined for a server that does not state it */
export const strictest = (all: ReadonlyArray<Caching | undefined>, isOpen: boolean): Caching =>
  kept(all.length === 0 ? undefined : all.reduce(strictestCaching), isOpen)

/**
 * A result for a modern client. Most results have none of these members, and are not parsed.
 * @param isKept true: the result must state its caching
 * @param isOpen true: the route needs no authentication
 * @throws RpcError for a text that is no object
 */
export function completeResult (text: string, serverInfo: string | undefined, isKept = false, isOpen = false): string {
  if (text.charCodeAt(0) !== 0x7b && !/^\s*\{/.test(text)) {
    throw new RpcError(code.internal, 'The server answered with a result that is no object', 'upstream')
  }
  const isPlain =
    !text.includes('"resultType"') && !text.includes('"_meta"') && !(isKept && /"(?:ttlMs|cacheScope)"/.test(text))
  if (isPlain) {
    const rest = text.slice(text.indexOf('{') + 1)
    const caching = isKept ? `,${cachingText(notKept)}` : ''
    return `${resultHead('complete', serverInfo)}${caching}${/^\s*\}/.test(rest) ? '' : ','}${rest}`
  }
  const spliced = isKept ? undefined : withInfo(text, serverInfo)
  if (spliced !== undefined) return spliced
  const members = new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))
  const meta = members.get('_meta')
  const changes: Record<string, string | undefined> = {
    resultType: members.get('resultType') ?? '"complete"',
    _meta: metaWith(meta, serverInfo)
  }
  if (isKept) {
    const { ttlMs, isPublic } = kept(cachingOf(text), isOpen)
    changes.ttlMs = String(ttlMs)
    changes.cacheScope = isPublic ? '"public"' : '"private"'
  }
  return withMembers(text, changes)
}

/** The `_meta` of a result with `serverInfo`; undefined if it has no member. @param meta as received */
function metaWith (meta: string | undefined, serverInfo: string | undefined): string | undefined {
  const text = withMembers(meta?.startsWith('{') === true ? meta : '{}', { [metaKeys.serverInfo]: serverInfo })
  return text === '{}' ? undefined : text
}

/** A result with `resultType` and `serverInfo` inserted; undefined if members must be replaced. */
function withInfo (text: string, serverInfo: string | undefined): string | undefined {
  const members = membersOf(text)
  const metas = members.filter(({ key }) => key === '_meta')
  const [meta] = metas
  const type = members.some(({ key }) => key === 'resultType') ? '' : '"resultType":"complete",'
  const from = text.indexOf('{') + 1
  if (!meta) {
    if (serverInfo === undefined) return type === '' ? text : undefined
    return `{${type}"_meta":{"${metaKeys.serverInfo}":${serverInfo}}` +
      `${members.length === 0 ? '' : ','}${text.slice(from)}`
  }
  if (serverInfo === undefined || metas.length > 1 || text[meta.start] !== '{') return undefined
  const metaText = text.slice(meta.start, meta.end)
  if (type === '' && metaText === `{"${metaKeys.serverInfo}":${serverInfo}}`) return text
  const own = withMembers(metaText, { [metaKeys.serverInfo]: serverInfo })
  return `{${type}${text.slice(from, meta.start)}${own}${text.slice(meta.end)}`
}

/** Whether a result asks the client a question. */
export const asksForInput = (text: string): boolean =>
  text.includes('"input_required"') && memberOf(text, 'resultType') === '"input_required"'

/** The result of `server/discover`. */
export const discovered = (
  members: Readonly<Record<string, string | undefined>>, serverInfo: string | undefined
): string => {
  const own = Object.entries(members).flatMap(([key, value]) => value === undefined ? [] : [`"${key}":${value}`])
  return `${resultHead('complete', serverInfo)},${cachingText(notKept)},${own.join()}}`
}

/** The modern form of each list of the gateway, so that it is written once. */
const completeLists = new WeakMap<List, { readonly head: string, readonly list: List }>()

/** A list with the members of modern results. */
export function completeList (list: List, serverInfo: string | undefined, caching: Caching): List {
  const head = `${serverInfo}${cachingText(caching)}`
  const known = completeLists.get(list)
  if (known?.head === head) return known.list
  const meta = memberOf(list.extra, '_meta')
  const made = list.withExtra(withMembers(list.extra, {
    resultType: '"complete"',
    _meta: metaWith(meta, serverInfo),
    ttlMs: String(caching.ttlMs),
    cacheScope: caching.isPublic ? '"public"' : '"private"'
  }))
  completeLists.set(list, { head, list: made })
  return made
}

/** The callable form of each list of the gateway. */
const callableLists = new WeakMap<List, List>()

/**
 * A list without the tools of legacy servers that run as tasks only (`execution.taskSupport`, MCP 2025-11-25), which
 * modern clients cannot call.
 */
export function callableList (list: List): List {
  if (list.kind !== 'tools') return list
  const known = callableLists.get(list)
  if (known) return known
  const entries = list.entries.filter((entry) => !needsTask(entry))
  const made = entries.length === list.entries.length ? list : list.with(entries)
  callableLists.set(list, made)
  return made
}

const needsTask = ({ text, isModern }: ListEntry): boolean =>
  isModern !== true && text.includes('"taskSupport"') &&
    smallMemberOf(memberOf(text, 'execution') ?? '{}', 'taskSupport') === 'required'

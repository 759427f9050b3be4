import { cachingOf, combineCaching, type Caching } from '../../../protocol/caching.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { memberOf, membersOf, withMembers } from '../../../protocol/json.ts'
import { metaKeys, type ResultType } from '../../../protocol/modern/envelope.ts'
import type { ListResult } from '../../gateway/index.ts'
import { gatewayLimits } from '../../gateway/index.ts'

// These functions add to results of servers the members that MCP 2026-07-28 requires: `resultType`, `serverInfo`, and
// for some methods `ttlMs` and `cacheScope`. All texts are JSON. Members that do not change keep their bytes.

const notCached: Caching = { ttlMs: 0, isPublic: false }

/**
 * Returns the beginning of a result's text, with the first members. A comma or a closing brace must follow.
 * @param serverInfo the `serverInfo` of the answering server as JSON text, if known
 */
export const resultHead = (type: ResultType, serverInfo: string | undefined): string =>
  `{"resultType":"${type}"${serverInfo === undefined ? '' : `,"_meta":{"${metaKeys.serverInfo}":${serverInfo}}`}`

const cachingText = ({ ttlMs, isPublic }: Caching): string =>
  `"ttlMs":${ttlMs},"cacheScope":"${isPublic ? 'public' : 'private'}"`

/** Limits the caching that a server states. A public result stays public only for a caller without credentials. */
const limitCaching = (stated: Caching | undefined, isAnonymous: boolean): Caching =>
  stated
    ? { ttlMs: Math.min(stated.ttlMs, gatewayLimits.freshLists.most), isPublic: stated.isPublic && isAnonymous }
    : notCached

/**
 * Returns the caching of a merged list.
 * @param all one entry per server, which is undefined if the server states no caching
 * @param isAnonymous whether the caller has no credential
 */
export const mergedCaching = (all: ReadonlyArray<Caching | undefined>, isAnonymous: boolean): Caching =>
  limitCaching(all.length === 0 ? undefined : all.reduce(combineCaching), isAnonymous)

/**
 * Adds the members of modern results to a server's result. Most results contain none of these members, and are not
 * parsed.
 * @param isCacheable whether the result must state its caching
 * @param isAnonymous whether the caller has no credential
 * @throws RpcError if the text is not an object
 */
export function toModernResult (
  text: string, serverInfo: string | undefined, isCacheable = false, isAnonymous = false
): string {
  if (text.charCodeAt(0) !== 0x7b && !/^\s*\{/.test(text)) {
    throw new RpcError(rpcCode.internal, 'The server returned a result that is not an object', 'upstream')
  }
  const isPlain =
    !text.includes('"resultType"') && !text.includes('"_meta"') && !(isCacheable && /"(?:ttlMs|cacheScope)"/.test(text))
  if (isPlain) {
    const rest = text.slice(text.indexOf('{') + 1)
    const caching = isCacheable ? `,${cachingText(notCached)}` : ''
    return `${resultHead('complete', serverInfo)}${caching}${/^\s*\}/.test(rest) ? '' : ','}${rest}`
  }
  const spliced = isCacheable ? undefined : insertServerInfo(text, serverInfo)
  if (spliced !== undefined) return spliced
  const members = new Map(membersOf(text).map(({ key, start, end }) => [key, text.slice(start, end)]))
  const meta = members.get('_meta')
  const changes: Record<string, string | undefined> = {
    resultType: members.get('resultType') ?? '"complete"',
    _meta: withServerInfo(meta, serverInfo)
  }
  if (isCacheable) {
    const { ttlMs, isPublic } = limitCaching(cachingOf(text), isAnonymous)
    changes.ttlMs = String(ttlMs)
    changes.cacheScope = isPublic ? '"public"' : '"private"'
  }
  return withMembers(text, changes)
}

/**
 * Adds `serverInfo`, if known, to a `_meta`; returns undefined instead of an empty object.
 * @param meta the `_meta` that the server sent, as JSON text
 */
function withServerInfo (meta: string | undefined, serverInfo: string | undefined): string | undefined {
  const text = withMembers(meta?.startsWith('{') === true ? meta : '{}', { [metaKeys.serverInfo]: serverInfo })
  return text === '{}' ? undefined : text
}

/** Adds `resultType` and `serverInfo` to a result, if that needs no other changes; otherwise returns undefined. */
function insertServerInfo (text: string, serverInfo: string | undefined): string | undefined {
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

/** Whether a result requests input from the client. */
export const isInputRequiredResult = (text: string): boolean =>
  text.includes('"input_required"') && memberOf(text, 'resultType') === '"input_required"'

/**
 * Returns the result of `server/discover`.
 * @param members the JSON texts of members; a member that is undefined is omitted
 * @param extra the other members that the server states, as the JSON text of an object
 */
export const discoverResult = (
  members: Readonly<Record<string, string | undefined>>, serverInfo: string | undefined, extra: string
): string => {
  const own = Object.entries(members).flatMap(([key, value]) => value === undefined ? [] : [`"${key}":${value}`])
  const result = `${resultHead('complete', serverInfo)},${cachingText(notCached)},${own.join()}}`
  if (extra === '{}') return result
  const others = membersOf(extra).map(({ key, start, end }) => [key, extra.slice(start, end)] as const)
  return withMembers(result, {
    ...Object.fromEntries(others), _meta: withServerInfo(memberOf(extra, '_meta'), serverInfo)
  })
}

/** Cache of the modern forms of lists, so that each is serialized once. `head`: the members that were added. */
const modernLists = new WeakMap<ListResult, { readonly head: string, readonly list: ListResult }>()

/** Adds the members of modern results to a list. */
export function toModernList (list: ListResult, serverInfo: string | undefined, caching: Caching): ListResult {
  const head = `${serverInfo}${cachingText(caching)}`
  const known = modernLists.get(list)
  if (known?.head === head) return known.list
  const meta = memberOf(list.extra, '_meta')
  const made = list.withExtra(withMembers(list.extra, {
    resultType: '"complete"',
    _meta: withServerInfo(meta, serverInfo),
    ttlMs: String(caching.ttlMs),
    cacheScope: caching.isPublic ? '"public"' : '"private"'
  }))
  modernLists.set(list, { head, list: made })
  return made
}

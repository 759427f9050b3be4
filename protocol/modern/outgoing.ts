import type { Changes } from '../call.ts'
import type { Exchange } from '../exchange.ts'
import { isObject, memberOf, withLast, withMembers } from '../json.ts'
import type { Level } from '../listener.ts'
import type { ClientIdentity } from '../upstream-session.ts'
import { encodeHeader, headerNames, maySuspend, metaKeys, nameMemberOf, type ModernVersion } from './envelope.ts'
import { paramValue, type ToolHeaders } from './param-headers.ts'

/** The level from which servers usually send log messages to clients that have set none. */
const usualLevel: Level = 'info'

/**
 * The envelope in `_meta` of each request to a server of the modern era, and the headers that repeat members of the
 * body (MCP 2026-07-28, "Overview" and "Streamable HTTP"). Both belong to one hop: those of the client's hop are
 * replaced.
 */
export class Outgoing {
  readonly version: ModernVersion
  readonly #members: Readonly<Record<string, string>>
  /** The same as the text of a `_meta` that has nothing else, by log level. */
  readonly #whole = new Map<Level | undefined, string>()
  readonly #tools: ToolHeaders

  constructor (version: ModernVersion, { clientInfo, capabilities }: ClientIdentity, tools: ToolHeaders) {
    this.version = version
    this.#tools = tools
    this.#members = {
      [metaKeys.protocolVersion]: JSON.stringify(version),
      [metaKeys.clientInfo]: JSON.stringify(clientInfo),
      [metaKeys.clientCapabilities]: JSON.stringify(capabilities)
    }
  }

  /** The params of a request of the gateway's own. @param meta further members of `_meta`, as JSON text */
  ownParams (paramsText: string, meta?: Changes): string {
    return withMembers(
      paramsText, { _meta: withMembers(memberOf(paramsText, '_meta') ?? '{}', { ...meta, ...this.#members }) }
    )
  }

  /**
   * The params of a client's request. All other members keep their bytes, but for answers that a client of an earlier
   * revision cannot have: the server asks such a client through `changes` alone.
   * @param id the progress token, where the client wants progress
   * @param hasLogs the server sends log messages
   */
  params (exchange: Exchange, changes: Changes, id: number, hasLogs: boolean): string {
    const { params: { _meta } } = exchange
    const paramsText = withoutAnswers(exchange)
    const level = hasLogs ? levelFor(exchange) : undefined
    const own = changes._meta ??
      (_meta !== undefined && mayHaveMeta.test(paramsText) ? memberOf(paramsText, '_meta') : undefined)
    if (own === undefined) {
      const text = Object.keys(changes).length === 0 ? paramsText : withMembers(paramsText, changes)
      return withLast(text, '_meta', this.#wholeMeta(level))
    }
    const members: Record<string, string | undefined> = { ...this.#members }
    const { progressToken: token, [metaKeys.logLevel]: wanted } = isObject(_meta) ? _meta : {}
    if (token !== undefined) members.progressToken = token === null ? undefined : String(id)
    if (level !== undefined) members[metaKeys.logLevel] = JSON.stringify(level)
    else if (wanted === null) members[metaKeys.logLevel] = undefined
    return withMembers(paramsText, { ...changes, _meta: withMembers(own, members) })
  }

  /** The `_meta` of a request that has none. */
  #wholeMeta (level: Level | undefined): string {
    const known = this.#whole.get(level)
    if (known !== undefined) return known
    const made = withMembers(
      '{}', level === undefined ? this.#members : { ...this.#members, [metaKeys.logLevel]: JSON.stringify(level) }
    )
    this.#whole.set(level, made)
    return made
  }

  /** The headers of a client's request, which repeat what stands in its params once they are changed. */
  headers (exchange: Exchange, changes: Changes): Record<string, string> {
    const { method, params, paramHeaders } = exchange
    const headers = this.ownHeaders(method)
    // Those that are not known here are for the server, which may know them (MCP 2026-07-28, "Custom Headers from Tool
    // Parameters").
    if (paramHeaders !== undefined) Object.assign(headers, paramHeaders)
    const member = nameMemberOf(method)
    if (member === undefined) return headers
    const name: unknown = changes[member] === undefined ? params[member] : JSON.parse(changes[member])
    if (typeof name !== 'string') return headers
    headers[headerNames.name] = encodeHeader(name)
    const repeated = method === 'tools/call' ? this.#tools.of(name) : undefined
    if (repeated === undefined) return headers
    const args: unknown = changes.arguments === undefined ? params.arguments : JSON.parse(changes.arguments)
    for (const { header, path } of repeated) {
      const value = paramValue(args, path)
      if (value !== undefined) headers[header] = encodeHeader(value)
      else if (paramHeaders?.[header] !== undefined) delete headers[header]
    }
    return headers
  }

  /** The headers of a request of the gateway's own, or of a notification. */
  ownHeaders (method: string): Record<string, string> {
    return { [headerNames.version]: this.version, [headerNames.method]: method }
  }
}

/**
 * Found in every text with a member `_meta`, escaped or not. A client of this era often has none left once the envelope
 * is taken off.
 */
const mayHaveMeta = /_meta|\\u/

/** Members of rounds of questions, in which clients of earlier revisions take no part. */
const ofRounds = { inputResponses: undefined, requestState: undefined }

/** The text of a request's params, without a state or answers that nobody here has given the client or asked it for. */
function withoutAnswers (
  { canSuspend, method, params: { inputResponses, requestState }, paramsText }: Exchange
): string {
  if (canSuspend || (inputResponses === undefined && requestState === undefined) || !maySuspend(method)) {
    return paramsText
  }
  return withMembers(paramsText, ofRounds)
}

/**
 * The log level that a request asks for. A client of this era says it with each request; for others it is that of their
 * session, or what servers usually send while no level is set. Undefined: as the request has it.
 */
function levelFor ({ canSuspend, client: { listener } }: Exchange): Level | undefined {
  return canSuspend || listener === undefined ? undefined : listener.level ?? usualLevel
}

import type { ParamChanges } from '../call.ts'
import { withTasksExtension } from '../capabilities.ts'
import type { Exchange } from '../exchange.ts'
import { isObject, memberOf, appendMember, withMembers } from '../json.ts'
import type { LogLevel } from '../listener.ts'
import type { ClientIdentity } from '../upstream-session.ts'
import {
  encodeHeader, headerNames, mayRequireInput, metaKeys, mcpNameMemberOf, type ModernVersion
} from './envelope.ts'
import { argumentText, type ToolParamHeaders } from './param-headers.ts'

/** The level at which most servers send log messages if the client has set none. */
const defaultLevel: LogLevel = 'info'

/**
 * Writes the envelope of requests to a modern server: members of `_meta`, and headers that repeat members of the body
 * (MCP 2026-07-28, "Overview" and "Streamable HTTP"). An envelope is valid for one hop, so it replaces the client's.
 */
export class OutgoingEnvelope {
  readonly version: ModernVersion
  readonly #members: Readonly<Record<string, string>>
  /** `#members` with the Tasks extension declared. */
  readonly #taskMembers: Readonly<Record<string, string>>
  /** Cache of `_meta` with the envelope only, as text, by log level. */
  readonly #metaTexts = new Map<LogLevel | undefined, string>()
  readonly #metaTextsWithTasks = new Map<LogLevel | undefined, string>()
  readonly #tools: ToolParamHeaders

  constructor (version: ModernVersion, { clientInfo, capabilities }: ClientIdentity, tools: ToolParamHeaders) {
    this.version = version
    this.#tools = tools
    this.#members = {
      [metaKeys.protocolVersion]: JSON.stringify(version),
      [metaKeys.clientInfo]: JSON.stringify(clientInfo),
      [metaKeys.clientCapabilities]: JSON.stringify(capabilities)
    }
    this.#taskMembers = {
      ...this.#members, [metaKeys.clientCapabilities]: JSON.stringify(withTasksExtension(capabilities))
    }
  }

  /**
   * Creates the params of one of the gateway's own requests.
   * @param meta further members of `_meta`, as JSON text
   * @param hasTasks whether to declare the Tasks extension
   */
  ownParams (paramsText: string, meta?: ParamChanges, hasTasks = false): string {
    const members = { ...meta, ...(hasTasks ? this.#taskMembers : this.#members) }
    return withMembers(paramsText, { _meta: withMembers(memberOf(paramsText, '_meta') ?? '{}', members) })
  }

  /**
   * Creates the params of a client's request. Members without changes keep their bytes, but answers to questions are
   * removed if the client is of an earlier revision.
   * @param id the progress token to send, if the client wants progress
   * @param hasLogs whether the server sends log messages
   * @param hasTasks whether to declare the Tasks extension
   */
  params (exchange: Exchange, changes: ParamChanges, id: number, hasLogs: boolean, hasTasks = false): string {
    const { params: { _meta } } = exchange
    const paramsText = withoutAnswers(exchange)
    const level = hasLogs ? levelFor(exchange) : undefined
    const own = changes._meta ??
      (_meta !== undefined && metaPattern.test(paramsText) ? memberOf(paramsText, '_meta') : undefined)
    if (own === undefined) {
      const text = Object.keys(changes).length === 0 ? paramsText : withMembers(paramsText, changes)
      return appendMember(text, '_meta', this.#metaText(level, hasTasks))
    }
    const members: Record<string, string | undefined> = { ...(hasTasks ? this.#taskMembers : this.#members) }
    const { progressToken: token, [metaKeys.logLevel]: wanted } = isObject(_meta) ? _meta : {}
    if (token !== undefined) members.progressToken = token === null ? undefined : String(id)
    if (level !== undefined) members[metaKeys.logLevel] = JSON.stringify(level)
    else if (wanted === null) members[metaKeys.logLevel] = undefined
    return withMembers(paramsText, { ...changes, _meta: withMembers(own, members) })
  }

  /** Returns the text of `_meta` for a request without one. */
  #metaText (level: LogLevel | undefined, hasTasks: boolean): string {
    const texts = hasTasks ? this.#metaTextsWithTasks : this.#metaTexts
    const known = texts.get(level)
    if (known !== undefined) return known
    const members = hasTasks ? this.#taskMembers : this.#members
    const made = withMembers(
      '{}', level === undefined ? members : { ...members, [metaKeys.logLevel]: JSON.stringify(level) }
    )
    texts.set(level, made)
    return made
  }

  /** Creates the headers of a client's request, which repeat members of its params after `changes`. */
  headers (exchange: Exchange, changes: ParamChanges): Record<string, string> {
    const { method, params, paramHeaders } = exchange
    const headers = this.ownHeaders(method)
    // Unknown parameter headers are forwarded, since the server may know them (MCP 2026-07-28, "Custom Headers from
    // Tool Parameters").
    if (paramHeaders !== undefined) Object.assign(headers, paramHeaders)
    const member = mcpNameMemberOf(method)
    if (member === undefined) return headers
    const name: unknown = changes[member] === undefined ? params[member] : JSON.parse(changes[member])
    if (typeof name !== 'string') return headers
    headers[headerNames.name] = encodeHeader(name)
    const repeated = method === 'tools/call' ? this.#tools.of(name) : undefined
    if (repeated === undefined) return headers
    const args: unknown = changes.arguments === undefined ? params.arguments : JSON.parse(changes.arguments)
    for (const { header, path } of repeated) {
      const value = argumentText(args, path)
      if (value !== undefined) headers[header] = encodeHeader(value)
      else if (paramHeaders?.[header] !== undefined) delete headers[header]
    }
    return headers
  }

  /** Creates the headers of a notification, or of the gateway's own request. @param name the value of `Mcp-Name` */
  ownHeaders (method: string, name?: string): Record<string, string> {
    const headers = { [headerNames.version]: this.version, [headerNames.method]: method }
    return name === undefined ? headers : { ...headers, [headerNames.name]: encodeHeader(name) }
  }
}

/** Matches all texts with a member `_meta`, escaped or not, and some other texts. */
const metaPattern = /_meta|\\u/

/** The members of multi round-trip requests, which clients of earlier revisions do not use. */
const roundMembers = { inputResponses: undefined, requestState: undefined }

/** Returns the text of a request's params, without answers and state if the client is of an earlier revision. */
function withoutAnswers (
  { canSuspend, method, params: { inputResponses, requestState }, paramsText }: Exchange
): string {
  if (canSuspend || (inputResponses === undefined && requestState === undefined) || !mayRequireInput(method)) {
    return paramsText
  }
  return withMembers(paramsText, roundMembers)
}

/**
 * Returns the log level to set in a request: that of the client's session, or the default. Undefined for a modern
 * client, whose requests contain the level.
 */
function levelFor ({ client: { listener } }: Exchange): LogLevel | undefined {
  return listener === undefined || listener.hasLevelInRequests === true ? undefined : listener.level ?? defaultLevel
}

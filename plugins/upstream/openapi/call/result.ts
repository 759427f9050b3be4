import { isUtf8 } from 'node:buffer'
import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http'
import { unescape } from 'node:querystring'
import { isDeeperThan, parseJsonObject, toOneLine } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import { transportLimits } from '../../../../protocol/transports/transport.ts'
import { isJsonMediaType } from '../http-syntax.ts'
import { upstreamLimits } from '../../limits.ts'

/** The response of an HTTP API, with the parts of the request that its conversion needs. */
export interface ApiResponse {
  method: string
  /** The URL of the request, without the query, which may contain a key. */
  url: string
  /** The `name=value` pairs of the request's query that come from the configuration; results must not show them. */
  configuredQuery: readonly string[]
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** Returns a tool result that reports an error with one sentence, as JSON text. */
export const errorResult = (sentence: string): string => toResultText([textBlock(sentence)], '', true)

/**
 * Converts a response to a tool result, as JSON text. The result contains the body as text, or as bytes in base64; a
 * JSON object is also `structuredContent`. A status of 400 or more becomes an error result with the status line and as
 * much of the body as fits. For a redirect, or a response without a body, the result contains the `location`; for HEAD,
 * the response headers. Values that would reveal `configuredQuery` are omitted from headers and `location`.
 */
export function toToolResult (response: ApiResponse): string {
  const { method, url, configuredQuery, status, headers, body } = response
  const contentType = headers['content-type'] ?? ''
  const statusLine = `HTTP ${status} ${STATUS_CODES[status] ?? ''}`.trim()
  if (method === 'HEAD') {
    const lines = [statusLine, ...headerLines(headers, configuredQuery)]
    return toResultText([textBlock(lines.join('\n'))], '', status >= 400)
  }
  const text = decodeText(body, contentType)
  if (status >= 400) return toErrorResult(statusLine, text, contentType)
  const { location } = headers
  const isSecret = location !== undefined && holdsConfiguredQuery(location, configuredQuery)
  const head: string[] = []
  if (location !== undefined) {
    head.push(textBlock(`${statusLine}\nlocation: ${isSecret ? location.replace(/[?#].*$/s, '') : location}`))
  }
  if (body.length === 0) return toResultText(location === undefined ? [textBlock(statusLine)] : head)
  if (status < 300) head.length = 0
  // The body of a redirect often repeats the location.
  if (head.length > 0 && isSecret) return toResultText(head)
  if (text === undefined) return toResultText([...head, binaryBlock(body, contentType, url)])
  return toResultText([...head, textBlock(text)], structuredContent(text, contentType))
}

function toErrorResult (statusLine: string, text: string | undefined, contentType: string): string {
  if (text === undefined || text === '') return errorResult(statusLine)
  const isWhole = text.length <= upstreamLimits.openapi.errorBody
  const content = [textBlock(statusLine), textBlock(truncate(text, upstreamLimits.openapi.errorBody))]
  return toResultText(content, isWhole ? structuredContent(text, contentType) : '', true)
}

/**
 * Returns a tool result, as JSON text.
 * @param content the content blocks, as JSON texts
 * @param structured `,"structuredContent":…`, or an empty text
 */
const toResultText = (content: readonly string[], structured = '', isError = false): string =>
  `{"content":[${content.join(',')}]${structured}${isError ? ',"isError":true' : ''}}`

const textBlock = (text: string): string => `{"type":"text","text":${JSON.stringify(text)}}`

/** Whether a text contains a configured query pair, as it is or percent-encoded once or twice. */
function holdsConfiguredQuery (text: string, configuredQuery: readonly string[]): boolean {
  const decode = (encoded: string): string => unescape(encoded.replaceAll('+', ' '))
  const decoded = [text, decode(text), decode(decode(text))]
  return configuredQuery.some((pair) => decoded.some((each) => each.includes(decode(pair))))
}

function headerLines (headers: IncomingHttpHeaders, configuredQuery: readonly string[]): string[] {
  return Object.entries(headers)
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value ?? ''] as const)
    .filter(([name, value]) => name !== 'set-cookie' && !holdsConfiguredQuery(value, configuredQuery))
    .map(([name, value]) => `${name}: ${value}`)
}

const mediaTypeOf = (contentType: string): string => contentType.split(';', 1)[0]?.trim() ?? ''

/** Decodes a body with its character set; undefined if its media type is not textual. */
function decodeText (body: Buffer, contentType: string): string | undefined {
  if (!isTextual(mediaTypeOf(contentType).toLowerCase(), body)) return undefined
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return body.toString()
  }
}

function isTextual (mediaType: string, body: Buffer): boolean {
  if (mediaType === '') return isUtf8(body)
  if (isJsonMediaType(mediaType)) return true
  return /^text\/|[/+](xml|yaml|x-yaml|javascript|x-ndjson|x-www-form-urlencoded|graphql|json-seq)$/.test(mediaType)
}

/** Returns the content block for bytes, as JSON text: an image, audio, or an embedded resource. */
function binaryBlock (body: Buffer, contentType: string, url: string): string {
  const mimeType = mediaTypeOf(contentType) || 'application/octet-stream'
  const [, type] = /^(image|audio)\//i.exec(mimeType) ?? []
  const data = body.toString('base64')
  if (type !== undefined) {
    return `{"type":"${type.toLowerCase()}","data":"${data}","mimeType":${JSON.stringify(mimeType)}}`
  }
  return `{"type":"resource","resource":{"uri":${JSON.stringify(url)},"mimeType":` +
    `${JSON.stringify(mimeType)},"blob":"${data}"}}`
}

/**
 * Returns the member `structuredContent` with a comma before it. Empty if the body is not a JSON object, as MCP
 * requires, or is nested too deeply for a message.
 */
function structuredContent (text: string, contentType: string): string {
  if (!(isJsonMediaType(contentType) || contentType === '') || !/^\s*\{/.test(text)) return ''
  if (isDeeperThan(text, transportLimits.depth - 10)) return ''
  return parseJsonObject(text) ? `,"structuredContent":${toOneLine(text).trim()}` : ''
}

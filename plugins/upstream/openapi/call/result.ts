import { isUtf8 } from 'node:buffer'
import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http'
import { unescape } from 'node:querystring'
import { isDeeperThan, isObject, oneLine } from '../../../../protocol/json.ts'
import { cut } from '../../../../protocol/text.ts'
import { transportLimits } from '../../../../protocol/transports/transport.ts'
import { limits } from '../../../limits/index.ts'
import { isJsonMediaType } from './body.ts'

/** What an API answered. */
export interface ApiResponse {
  method: string
  /** Without the query, which may hold a key. */
  url: string
  /** Pairs of the query that the configuration added: not for the caller. */
  configuredQuery: readonly string[]
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** A tool's result that is an error, in words. */
export const errorResult = (sentence: string): string => `{"content":[${text(sentence)}],"isError":true}`

const text = (value: string): string => `{"type":"text","text":${JSON.stringify(value)}}`

/**
 * An API's answer as the text of a tool's result: its body as text, or as bytes in base64; an object in JSON also as
 * `structuredContent`, to the digit. A status of 400 or more is an error: its line, then as much of the body as fits. A redirect, or
 * an answer without a body, says where it leads.
 */
export function toToolResult ({ method, url, configuredQuery: ownQuery, status, headers, body }: ApiResponse): string {
  const type = headers['content-type'] ?? ''
  const line = `HTTP ${status} ${STATUS_CODES[status] ?? ''}`.trim()
  if (method === 'HEAD') {
    return `{"content":[${text([line, ...shownHeaders(headers, ownQuery)].join('\n'))}]${status >= 400 ? ',"isError":true' : ''}}`
  }
  const said = textOf(body, type)
  if (status >= 400) {
    if (said === undefined || said === '') return errorResult(line)
    const isWhole = said.length <= limits.openapi.errorBody
    return `{"content":[${text(line)},${text(cut(said, limits.openapi.errorBody))}]${isWhole ? structured(said, type) : ''},"isError":true}`
  }
  const { location } = headers
  // The body of a redirect is often made of its address.
  const tells = location !== undefined && !repeats(location, ownQuery)
  const content = location === undefined ? [] : [text(`${line}\nlocation: ${tells ? location : location.replace(/[?#].*$/s, '')}`)]
  if (body.length === 0) return `{"content":[${content[0] ?? text(line)}]}`
  const head = status >= 300 ? content : []
  if (head.length > 0 && !tells) return `{"content":[${head.join()}]}`
  if (said === undefined) return `{"content":[${[...head, binary(body, type, url)].join()}]}`
  return `{"content":[${[...head, text(said)].join()}]${structured(said, type)}}`
}

/** Whether a text, in however many layers of encoding, holds what the configuration adds to the query. */
function repeats (value: string, ownQuery: readonly string[]): boolean {
  const plain = (encoded: string): string => unescape(encoded.replaceAll('+', ' '))
  const told = [value, plain(value), plain(plain(value))]
  return ownQuery.some((pair) => told.some((each) => each.includes(plain(pair))))
}

function shownHeaders (headers: IncomingHttpHeaders, ownQuery: readonly string[]): string[] {
  const shown = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value ?? ''] as const)
  return shown.filter(([name, value]) => name !== 'set-cookie' && !repeats(value, ownQuery)).map(([name, value]) => `${name}: ${value}`)
}

/** The body as text, in its own character set; undefined: it is none. */
function textOf (body: Buffer, type: string): string | undefined {
  const plain = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const isText =
    plain === ''
      ? isUtf8(body)
      : isJsonMediaType(plain) || /^text\/|[/+](xml|yaml|x-yaml|javascript|x-ndjson|x-www-form-urlencoded|graphql|json-seq)$/.test(plain)
  if (!isText) return undefined
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return body.toString()
  }
}

function binary (body: Buffer, type: string, url: string): string {
  const mimeType = type.split(';', 1)[0]?.trim() || 'application/octet-stream'
  const [, kind] = /^(image|audio)\//i.exec(mimeType) ?? []
  const data = body.toString('base64')
  if (kind !== undefined) return `{"type":"${kind.toLowerCase()}","data":"${data}","mimeType":${JSON.stringify(mimeType)}}`
  return `{"type":"resource","resource":{"uri":${JSON.stringify(url)},"mimeType":${JSON.stringify(mimeType)},"blob":"${data}"}}`
}

/** MCP has objects only there. Too deep for a message: it stays text. */
function structured (said: string, type: string): string {
  if (!(isJsonMediaType(type) || type === '') || !/^\s*\{/.test(said) || isDeeperThan(said, transportLimits.depth - 10)) return ''
  try {
    return isObject(JSON.parse(said)) ? `,"structuredContent":${oneLine(said).trim()}` : ''
  } catch {
    return ''
  }
}

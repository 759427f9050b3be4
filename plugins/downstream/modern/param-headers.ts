import type { IncomingHttpHeaders } from 'node:http'
import { RpcError } from '../../../protocol/errors.ts'
import type { RequestHeaders } from '../../../protocol/exchange.ts'
import type { Item } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { decodeHeader, headerNames, modernErrorCode } from '../../../protocol/modern/envelope.ts'
import {
  parseParamHeaders, argumentAt, type ParamHeader, type ParamHeaderValue
} from '../../../protocol/modern/param-headers.ts'
import type { View } from '../../settings/index.ts'
import type { Gateway, Surface } from '../../gateway/index.ts'
import { firstHeaderValue } from '../endpoint.ts'
import type { ModernRequest } from './request.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** Returns the `Mcp-Param-*` headers that a tool declares; none if any is invalid, since clients ignore such tools. */
const headersOf = memoized(({ text }: Item): readonly ParamHeader[] => parseParamHeaders(text) ?? [])

/** Matches header values of allowed characters only (MCP 2026-07-28, "Value Encoding"). */
const headerValuePattern = /^[\t\x20-\x7e]*$/

/**
 * Returns the `Mcp-Param-*` headers of a request that are forwarded to the server. Omits values that are too long,
 * contain characters other than printable ASCII and tabs, or contain a credential for this gateway.
 * @param credentialHeader the header that carries the caller's credential, in lower case
 * @returns undefined if there are none
 */
export function forwardedParamHeaders (
  headers: RequestHeaders,
  credentialHeader: string | undefined,
  isOwnCredential: (value: string) => boolean
): Record<string, string> | undefined {
  let found: Record<string, string> | undefined
  for (const name in headers) {
    if (!name.startsWith(headerNames.param) || name === credentialHeader) continue
    const value = headers[name]
    if (typeof value !== 'string' || value.length > gatewayLimits.passthroughHeader ||
      !headerValuePattern.test(value) || isOwnCredential(value)) continue
    found ??= {}
    found[name] = value
  }
  return found
}

const decimal = /^-?\d+(\.\d+)?$/

/** Whether a header has the value of an argument. Numbers are compared by value, since `42.0` equals 42. */
const isSameValue = (header: string, value: ParamHeaderValue): boolean =>
  header === String(value) || (typeof value === 'number' && decimal.test(header) && Number(header) === value)

/** Checks the `Mcp-Param-*` headers of a call against its arguments, if the tool is known. @throws RpcError -32020 */
export function checkParamHeaders (
  gateway: Gateway,
  view: View,
  surface: Surface,
  { params }: ModernRequest,
  headers: IncomingHttpHeaders
): void {
  const item = typeof params.name === 'string' ? gateway.lookUpIn(view, surface, 'tools', params.name)?.item : undefined
  if (!item) return
  for (const { header, path } of headersOf(item)) {
    const value = argumentAt(params.arguments, path)
    const sent = firstHeaderValue(headers[header])
    if (value === undefined && sent === undefined) continue
    const decoded = sent === undefined ? undefined : decodeHeader(sent)
    if (value !== undefined && decoded !== undefined && isSameValue(decoded, value)) continue
    const what = sent === undefined ? 'is missing' : 'differs from the argument'
    throw new RpcError(modernErrorCode.headerMismatch, `Header mismatch: ${header} ${what}`)
  }
}

import { createHmac, randomBytes } from 'node:crypto'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { RequestHeaders } from '../../../protocol/exchange.ts'
import { passthroughHeaderNames, type ServerConfig } from '../../../schemas/server.ts'
import { containsCredential } from '../../base/secrets/index.ts'
import { gatewayLimits } from '../../gateway/index.ts'

/** Headers of a client that are passed on to an upstream, by name in lower case. */
export type PassedHeaders = Readonly<Record<string, string>>

/**
 * Headers that are never passed on: hop-by-hop and message framing headers, those that authenticate the caller to the
 * gateway, and those that proxies add about the client.
 */
const neverPassed = new Set([
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings', 'host', 'expect',
  'accept', 'accept-encoding', 'cookie', 'x-auth-token', 'x-session-id', 'last-event-id', 'forwarded', 'x-real-ip'
])
const neverPrefixes = /^(proxy-|content-|mcp-|x-forwarded-)/
const namePattern = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

/** Whether a header name (in lower case) may be passed on if it is configured. */
export const isForwardableHeader = (name: string): boolean =>
  namePattern.test(name) && !neverPassed.has(name) && !neverPrefixes.test(name)

/** Returns the header names that a config passes on, in lower case, and a warning for each that cannot be passed on. */
export function parsePassthroughHeaders (
  config: ServerConfig, isRemote: boolean
): { names: string[], warnings: string[] } {
  const written = passthroughHeaderNames(config)
  if (written.length > 0 && !isRemote) {
    return {
      names: [],
      warnings: ['passthroughHeaders have no effect: a server that is a command receives no HTTP headers']
    }
  }
  const configured = new Set(Object.keys(config.headers ?? {}).map((name) => name.toLowerCase()))
  const names = new Set<string>()
  const warnings: string[] = []
  for (const name of written.map((each) => each.toLowerCase())) {
    if (!isForwardableHeader(name)) warnings.push(`passthroughHeaders: ${JSON.stringify(name)} is never forwarded`)
    else if (configured.has(name)) {
      warnings.push(`passthroughHeaders: ${JSON.stringify(name)} is not forwarded, since "headers" sets it`)
    } else names.add(name)
  }
  return { names: [...names], warnings }
}

/**
 * Selects the headers of a client's request that are passed on to a server. A value that contains a credential of this
 * gateway is omitted.
 * @param names the names to pass on, from `parsePassthroughHeaders`
 * @param headers the request's headers, without the one that authenticated the caller
 * @param isOwnCredential whether a value contains a credential of this gateway; default: decided by its form
 * @returns undefined if there are none
 * @throws RpcError -32602 for a value that is too long or not allowed in a header
 */
export function selectPassedHeaders (
  server: string,
  names: readonly string[],
  headers: RequestHeaders,
  isOwnCredential: (value: string) => boolean = containsCredential
): PassedHeaders | undefined {
  let passed: Record<string, string> | undefined
  const hopByHop = headers.connection === undefined ? undefined : namesIn(textOf(headers.connection) ?? '')
  for (const name of names) {
    const value = textOf(headers[name])
    // Headers named in the client's `Connection` header are hop-by-hop (RFC 9110, section 7.6.1).
    if (value === undefined || hopByHop?.has(name) === true) continue
    const problem = problemOf(value)
    if (problem !== undefined) {
      throw new RpcError(
        rpcCode.invalidParams,
        `The header ${JSON.stringify(name)}, which is forwarded to server ${JSON.stringify(server)}, ${problem}`
      )
    }
    if (isOwnCredential(value)) continue
    passed ??= {}
    passed[name] = value
  }
  return passed
}

const namesIn = (list: string): Set<string> => new Set(list.toLowerCase().split(',').map((each) => each.trim()))

/** Returns the reason why a header value cannot be sent, as a clause; undefined if it can. */
function problemOf (value: string): string | undefined {
  if (value.length > gatewayLimits.passthroughHeader) return `is longer than ${gatewayLimits.passthroughHeader} bytes`
  return /[^\t\x20-\x7e\x80-\xff]/.test(value) ? 'contains a character that is not allowed in a header' : undefined
}

/** Returns a header as one text: the values of a repeated header form one list (RFC 9110, section 5.3). */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : undefined

const digestKey = randomBytes(32)

/**
 * Returns a keyed hash of passed-on headers: it is comparable within this process, and reveals nothing of the values.
 */
export const digestHeaders = (passed: PassedHeaders): string =>
  createHmac('sha256', digestKey).update(JSON.stringify(passed)).digest('base64url')

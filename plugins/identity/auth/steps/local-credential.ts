import { timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { ownCredentialPrefixes } from '../../../../schemas/credential-prefixes.ts'
import { isLoopback } from '../../../base/config/index.ts'
import { sha256 } from '../../../base/secrets/index.ts'
import type { Principal } from '../../../settings/index.ts'
import type { AuthStep, RequestCredentials } from '../chain.ts'

/**
 * Authenticates by the credential of the command line on this machine. The gateway writes a new credential at its
 * start, if it is reachable on a loopback address, to a file that only its operating system user can read. The
 * credential grants admin rights outside the MCP routes, and only on direct connections from a loopback address.
 * @param token the credential; undefined if none was created
 */
export function localCredentialStep (token: string | undefined): AuthStep {
  const hasLocalCredential = createLocalCredentialCheck(token)
  const principal: Principal = {
    key: 'command line',
    kind: 'system-key',
    user: 'system',
    username: 'system',
    isAdmin: true,
    credential: { id: 'command-line', name: 'command line' },
    inSnapshot: () => principal
  }
  return (credentials, routes) => routes !== 'mcp' && hasLocalCredential(credentials) ? principal : undefined
}

/**
 * Returns a function that checks whether a request carries the command line's credential and comes from this machine.
 */
export function createLocalCredentialCheck (token: string | undefined): (credentials: RequestCredentials) => boolean {
  const expected = token === undefined ? undefined : Buffer.from(sha256(token))
  return ({ headers, socket }) => {
    const { authorization } = headers
    // The prefix is checked first, so that no other credential is hashed.
    const isLocal = authorization?.startsWith(`Bearer ${ownCredentialPrefixes.local}`) === true
    if (expected === undefined || !isLocal) return false
    return isLocalRequest({ headers, socket }) && timingSafeEqual(Buffer.from(sha256(authorization.slice(7))), expected)
  }
}

/** Headers that proxies add to the requests that they forward. */
export const forwardingHeaders =
  ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via']

/** Whether a request comes from this machine and not through a proxy. */
export function isLocalRequest ({ headers, socket }: Pick<RequestCredentials, 'headers' | 'socket'>): boolean {
  if (forwardingHeaders.some((name) => headers[name] !== undefined)) return false
  const plain = (socket?.remoteAddress ?? '').replace(/^::ffff:/i, '')
  return isIP(plain) !== 0 && isLoopback(plain)
}

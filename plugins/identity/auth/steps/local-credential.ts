import { isIP } from 'node:net'
import { timingSafeEqual } from 'node:crypto'
import { credentialPrefixes } from '../../../../schemas/credential-prefixes.ts'
import { isLoopback } from '../../../base/config/index.ts'
import type { Principal } from '../../../settings/index.ts'
import { sha256 } from '../../../base/secrets/index.ts'
import type { RequestCredentials, AuthStep } from '../chain.ts'

/**
 * The credential of this machine's command line: made at each start, and kept in a file that only the gateway's user may read. It has the
 * rights of an admin on the management API, from a loopback address and not through a proxy (DECISIONS §16).
 * @param token undefined: there is none
 */
export function localCredential (token: string | undefined): AuthStep {
  const isOurs = holdsLocal(token)
  const principal: Principal = {
    key: 'command line',
    kind: 'system-key',
    user: 'system',
    username: 'system',
    isAdmin: true,
    credential: { id: 'command-line', name: 'command line' },
    standing: () => principal
  }
  return (credentials, routes) => routes !== 'mcp' && isOurs(credentials) ? principal : undefined
}

/** Whether a request holds that credential, from this machine. */
export function holdsLocal (token: string | undefined): (credentials: RequestCredentials) => boolean {
  const expected = token === undefined ? undefined : Buffer.from(sha256(token))
  return ({ headers, socket }) => {
    const { authorization } = headers
    // So nothing is hashed for other credentials.
    if (expected === undefined || authorization?.startsWith(`Bearer ${credentialPrefixes.local}`) !== true) return false
    if (headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined) return false
    return isFromHere(socket?.remoteAddress) && timingSafeEqual(Buffer.from(sha256(authorization.slice(7))), expected)
  }
}

const isFromHere = (address = ''): boolean => {
  const plain = address.replace(/^::ffff:/i, '')
  return isIP(plain) !== 0 && isLoopback(plain)
}

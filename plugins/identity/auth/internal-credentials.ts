import { randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import type { Snapshot } from '../../../db/store.ts'
import { ownCredentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { Principal } from '../../settings/index.ts'
import type { AuthStep } from './chain.ts'

/** Returns the principal of a credential in a snapshot of the settings; undefined if it is no longer valid. */
type ResolvePrincipal = (snapshot: Snapshot) => Principal | undefined

/** A credential for requests within this process. */
export interface InternalCredential {
  readonly token: string
  /** Invalidates the credential. */
  readonly revoke: () => void
}

/**
 * Credentials that the gateway issues to itself, to call its own MCP endpoint on behalf of a user or key. They are
 * never shown or stored, and are refused on requests from a network connection.
 */
export class InternalCredentials {
  readonly #resolvers = new Map<string, ResolvePrincipal>()

  /** Creates a credential. @param resolve called for each MCP request with the credential */
  issue (resolve: ResolvePrincipal): InternalCredential {
    const token = `${ownCredentialPrefixes.internal}${randomBytes(32).toString('hex')}`
    const hash = sha256(token)
    this.#resolvers.set(hash, resolve)
    return { token, revoke: () => { this.#resolvers.delete(hash) } }
  }

  readonly step: AuthStep = ({ headers: { authorization }, socket }, routes, snapshot) => {
    const isInternal = authorization?.startsWith(`Bearer ${ownCredentialPrefixes.internal}`) === true
    if (routes !== 'mcp' || !isInternal) return undefined
    return socket instanceof Socket ? undefined : this.#resolvers.get(sha256(authorization.slice(7)))?.(snapshot)
  }
}

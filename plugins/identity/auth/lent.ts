import { randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import type { Snapshot } from '../../../db/store.ts'
import { credentialPrefixes } from '../../../schemas/credential-prefixes.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { Principal } from '../../settings/index.ts'
import type { AuthStep } from './chain.ts'

/** Whom a credential stands for now; undefined: for nobody any more. */
type Lender = (snapshot: Snapshot) => Principal | undefined

/** A credential for requests within this process. */
export interface Lent {
  readonly token: string
  /** From then on it is good for nothing. */
  readonly end: () => void
}

/**
 * Credentials that the gateway makes to ask its own MCP endpoint in somebody's name. They are never shown or stored,
 * and are not good for a request that comes over a connection.
 */
export class LentCredentials {
  readonly #lenders = new Map<string, Lender>()

  lend (lender: Lender): Lent {
    const token = `${credentialPrefixes.lent}${randomBytes(32).toString('hex')}`
    const hash = sha256(token)
    this.#lenders.set(hash, lender)
    return { token, end: () => { this.#lenders.delete(hash) } }
  }

  readonly step: AuthStep = ({ headers: { authorization }, socket }, routes, snapshot) => {
    if (routes !== 'mcp' || authorization?.startsWith(`Bearer ${credentialPrefixes.lent}`) !== true) return undefined
    return socket instanceof Socket ? undefined : this.#lenders.get(sha256(authorization.slice(7)))?.(snapshot)
  }
}

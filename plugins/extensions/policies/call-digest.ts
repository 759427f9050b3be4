import { hash } from 'node:crypto'
import type { Policy } from '../../../schemas/policies.ts'
import { canonicalJson } from '../../../protocol/json.ts'
import type { Principal } from '../../settings/index.ts'
import type { RequestedItem } from './facts.ts'

/** A call that a person must approve. */
export interface CallToApprove {
  readonly principal: Principal
  /** The item to call. */
  readonly subject: RequestedItem
  /** Identifies the server (`serverFingerprint`), since another server may have its name later. */
  readonly server: string
  /** The parsed arguments. */
  readonly args: unknown
  /** The policy that requires the approval. */
  readonly policy: Policy
}

/** Returns a hash of a call's caller, item, arguments and policy. Equal calls of a caller have the same hash. */
export function callDigestOf ({ principal, subject: { kind, name }, server, args, policy }: CallToApprove): string {
  const parts = [principal.key, server, kind, name, args ?? {}, policy.id]
  return hash('sha256', canonicalJson(parts), 'base64url')
}

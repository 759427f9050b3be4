import { hash } from 'node:crypto'
import type { Policy } from '../../../schemas/policies.ts'
import { isObject } from '../../../protocol/json.ts'
import type { Principal } from '../../settings/index.ts'
import type { RequestedItem } from './facts.ts'

/** A call that a person must approve. */
export interface CallToApprove {
  readonly principal: Principal
  /** The item to call. */
  readonly subject: RequestedItem
  /** The parsed arguments. */
  readonly args: unknown
  /** The policy that requires the approval. */
  readonly policy: Policy
}

/**
 * Returns a copy of a value in which each object is replaced by a sorted list of its members, so that equal values have
 * the same JSON text.
 */
function withSortedMembers (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedMembers)
  if (!isObject(value)) return value
  return { members: Object.keys(value).sort().map((key) => [key, withSortedMembers(value[key])]) }
}

/** Returns a hash of a call's caller, item, arguments and policy. Equal calls of a caller have the same hash. */
export function callDigestOf ({ principal, subject: { server, kind, name }, args, policy }: CallToApprove): string {
  const parts = [principal.key, server, kind, name, withSortedMembers(args ?? {}), policy.id]
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

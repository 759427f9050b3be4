import { hash } from 'node:crypto'
import type { Policy } from '../../../schemas/policies.ts'
import { isObject } from '../../../protocol/json.ts'
import type { Principal } from '../../settings/index.ts'
import type { RequestedItem } from './facts.ts'

/** A call that needs approval by a person, as a policy requires. */
export interface CallToApprove {
  readonly principal: Principal
  readonly subject: RequestedItem
  readonly args: unknown
  readonly argsText: string
  readonly policy: Policy
}

/**
 * Returns a value in which objects are lists of their members in alphabetical order, so that equal values are written
 * alike.
 */
function withSortedMembers (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedMembers)
  if (!isObject(value)) return value
  return { members: Object.keys(value).sort().map((key) => [key, withSortedMembers(value[key])]) }
}

/** Returns a digest that identifies a call: of its caller, item and arguments, and the policy that asks. */
export function callDigestOf ({ principal, subject: { server, kind, name }, args, policy }: CallToApprove): string {
  const parts = [principal.key, server, kind, name, withSortedMembers(args ?? {}), policy.id]
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

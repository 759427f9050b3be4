import type { Policy } from '../../schemas/policies.ts'

/** A call that waits, or waited, for a person to allow it. */
export interface Approval {
  /** A UUID. */
  readonly id: string
  readonly state: 'pending' | 'approved' | 'denied'
  /** Identifies caller, item, arguments and policy: the approval is good for exactly these. */
  readonly digest: string
  /** The key of the caller's principal. */
  readonly principal: string
  /** Whose share it counts in: the caller's user, whichever key he used, or a principal without a user. */
  readonly owner: string
  /** The users who count as the caller, none of whom may approve. */
  readonly callers: readonly string[]
  /** The caller's name in records. */
  readonly username: string
  readonly server: string
  readonly tool: string
  readonly kind: 'tool' | 'prompt' | 'resource'
  /** As JSON text, in which long texts are cut. */
  readonly arguments: string
  readonly policy: Pick<Policy, 'id' | 'name'>
  /** In ms since 1970, as `expiresAt`. */
  readonly createdAt: number
  readonly expiresAt: number
  readonly decidedBy?: string
  /** Whether a call has used it. */
  readonly isUsed?: true
}

export interface StoredApproval { readonly approval: Approval, readonly version: string }

/** The approvals of all replicas. They survive a restart. */
export interface Approvals {
  /** @param kept the time for which it is listed, in ms */
  add: (approval: Approval, kept: number) => Promise<void>
  find: (id: string) => Promise<StoredApproval | undefined>
  /** Lists the approvals, newest first; those of one digest, if it is given. */
  list: (digest?: string) => Promise<StoredApproval[]>
  /** Replaces an approval. @returns false if somebody else has replaced it since it was read */
  replace: (former: StoredApproval, next: Approval, kept: number) => Promise<boolean>
}

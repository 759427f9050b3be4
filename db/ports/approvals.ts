import type { Policy } from '../../schemas/policies.ts'

/** A call that waits, or waited, for a user's approval. */
export interface Approval {
  /** A UUID. */
  readonly id: string
  readonly state: 'pending' | 'approved' | 'denied'
  /** Identifies caller, item, arguments and policy: the approval is valid for exactly these. */
  readonly digest: string
  /** The key of the caller's principal. */
  readonly principal: string
  /**
   * The owner whose share it counts towards: the caller's user, whichever key was used, or a principal without a user.
   */
  readonly owner: string
  /** The users who are treated as the caller, none of whom may approve. */
  readonly callers: readonly string[]
  /** The caller's name in records. */
  readonly username: string
  readonly server: string
  readonly tool: string
  readonly kind: 'tool' | 'prompt' | 'resource'
  /** The arguments as JSON text, in which long texts are truncated. */
  readonly arguments: string
  readonly policy: Pick<Policy, 'id' | 'name'>
  /** In ms since 1970, like `expiresAt`. */
  readonly createdAt: number
  readonly expiresAt: number
  readonly decidedBy?: string
  /** Whether a call has used the approval. */
  readonly isUsed?: true
}

export interface StoredApproval { readonly approval: Approval, readonly version: string }

/** The approvals of all replicas. They survive a restart. */
export interface Approvals {
  /** @param kept how long the approval is listed, in ms */
  add: (approval: Approval, kept: number) => Promise<void>
  find: (id: string) => Promise<StoredApproval | undefined>
  /** Lists the approvals, newest first; only those with the digest, if it is given. */
  list: (digest?: string) => Promise<StoredApproval[]>
  /** Replaces an approval. @returns false if it has been replaced since it was read */
  replace: (former: StoredApproval, next: Approval, kept: number) => Promise<boolean>
}

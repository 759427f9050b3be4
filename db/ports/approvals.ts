import type { Policy } from '../../schemas/policies.ts'
import { recordCollections, type RecordEntry, RecordPort, type StoredRecord } from '../records.ts'

const { approvals } = recordCollections

/** A call that waits or waited for approval. */
export interface Approval {
  /** A UUID. */
  readonly id: string
  readonly state: 'pending' | 'approved' | 'denied'
  /** A hash of caller, item, arguments and policy: the approval is valid only for calls with the same hash. */
  readonly digest: string
  /** The key of the caller's principal. */
  readonly principal: string
  /**
   * The owner to whom the limit `maxPerOwner` applies: the caller's user, whichever key the user uses; `principal` if
   * the caller has no user.
   */
  readonly owner: string
  /** The users who count as the caller, and therefore must not approve the call. */
  readonly callers: readonly string[]
  /** The caller's name for display. */
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

/** An approval as read from the storage. Each change gives it another `version`. */
export interface StoredApproval { readonly approval: Approval, readonly version: string }

/** Stores the approvals of all replicas, as records. They survive a restart. */
export class Approvals extends RecordPort {
  /** Stores a new approval. @param kept how long it is stored, in ms from `createdAt` */
  async add (approval: Approval, kept: number): Promise<void> {
    await this.records.put(approvals, [toEntry(approval, kept)])
  }

  async find (id: string): Promise<StoredApproval | undefined> {
    const found = await this.records.find(approvals, id)
    return found && toStored(found)[0]
  }

  /** Lists the approvals with a digest, newest first; by default all approvals. */
  async list (digest?: string): Promise<StoredApproval[]> {
    const filter = digest === undefined ? {} : { labels: [digestLabel(digest)] }
    return (await this.records.list(approvals, filter)).flatMap(toStored)
  }

  /**
   * Replaces an approval.
   * @param kept how long it is stored, in ms from `createdAt`
   * @returns false if it has been replaced since it was read; nothing is changed then
   */
  async replace ({ version }: StoredApproval, next: Approval, kept: number): Promise<boolean> {
    return await this.records.swap(approvals, version, toEntry(next, kept))
  }
}

const digestLabel = (digest: string): string => `digest:${digest}`

const toEntry = (approval: Approval, kept: number): RecordEntry => ({
  key: approval.id,
  value: approval,
  owner: approval.owner,
  labels: [digestLabel(approval.digest)],
  at: approval.createdAt,
  expiresAt: approval.createdAt + kept
})

/** Returns a list with the approval in a record; an empty list if the record cannot be decrypted. */
const toStored = ({ value, version }: StoredRecord): StoredApproval[] =>
  value === undefined ? [] : [{ approval: value as Approval, version }]

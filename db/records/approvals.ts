import type { Approval, Approvals, StoredApproval } from '../ports/approvals.ts'
import { recordCollections, type RecordEntry, type Records, type StoredRecord } from '../records.ts'

const { approvals } = recordCollections

const digestLabel = (digest: string): string => `digest:${digest}`

const toEntry = (approval: Approval, kept: number): RecordEntry => ({
  key: approval.id,
  value: approval,
  owner: approval.owner,
  labels: [digestLabel(approval.digest)],
  at: approval.createdAt,
  expiresAt: approval.createdAt + kept
})

/** Returns an approval that can be decrypted; others are treated as expired. */
const toStored = ({ value, version }: StoredRecord): StoredApproval[] =>
  value === undefined ? [] : [{ approval: value as Approval, version }]

/** Approvals as records. */
export class RecordedApprovals implements Approvals {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async add (approval: Approval, kept: number): Promise<void> {
    await this.#records.put(approvals, [toEntry(approval, kept)])
  }

  async find (id: string): Promise<StoredApproval | undefined> {
    const found = await this.#records.find(approvals, id)
    return found && toStored(found)[0]
  }

  async list (digest?: string): Promise<StoredApproval[]> {
    const which = digest === undefined ? {} : { labels: [digestLabel(digest)] }
    return (await this.#records.list(approvals, which)).flatMap(toStored)
  }

  async replace ({ version }: StoredApproval, next: Approval, kept: number): Promise<boolean> {
    return await this.#records.swap(approvals, version, toEntry(next, kept))
  }
}

import { usageRetention, type UsageCount, type UsageCounts } from '../ports/usage.ts'
import { recordCollections, type Records } from '../records.ts'

const collection = recordCollections.usage
const dayInMs = 86_400_000
/** Max attempts to add to a counter that other replicas change concurrently. */
const maxAttempts = 50

const labelOf = (day: string): string => `day:${day}`

/** Counters of usage as records. */
export class RecordedUsage implements UsageCounts {
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async add (counts: readonly UsageCount[]): Promise<void> {
    for (const count of counts) {
      let isAdded = false
      for (let attempt = 0; !isAdded && attempt < maxAttempts; attempt++) isAdded = await this.#tryToAdd(count)
      if (!isAdded) throw new Error('too many replicas change the same counter')
    }
  }

  async list (days: readonly string[]): Promise<UsageCount[]> {
    const found = await this.#records.list(collection, { labels: days.map(labelOf) })
    return found.map(({ value }) => value as UsageCount)
  }

  async #tryToAdd (count: UsageCount): Promise<boolean> {
    const { day, user, key: keyId, server, tool, calls, errors, resultTokens } = count
    const key = JSON.stringify([day, user, keyId, server, tool])
    const former = await this.#records.find(collection, key)
    const { calls: c, errors: e, resultTokens: t } =
      former?.value as UsageCount | undefined ?? { calls: 0, errors: 0, resultTokens: 0 }
    const value = { ...count, calls: c + calls, errors: e + errors, resultTokens: t + resultTokens }
    return await this.#records.swap(collection, former?.version, {
      key, value, labels: [labelOf(day)], expiresAt: Date.parse(day) + usageRetention * dayInMs
    })
  }
}

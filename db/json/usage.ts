import { readFile } from 'node:fs/promises'
import { isPlainObject } from '../../schemas/unknown-members.ts'
import { errorCode } from '../errors.ts'
import type { MemoryCounters } from '../memory/counters.ts'
import { UsageCounts, usageRetentionDays, type UsageCount } from '../ports/usage.ts'
import type { Records } from '../records.ts'
import { quotaKeyPrefix } from '../store.ts'
import { replaceFileAtomically } from './write.ts'

/**
 * The content of the file for usage counters. `at`: the time at which it was saved, in ms since 1970; `quotas`: the
 * quota counters, with the time that was left until their reset, in ms; `usage`: the usage counters.
 */
interface Saved {
  readonly at: number
  readonly quotas: Array<[key: string, count: number, left: number]>
  readonly usage: UsageCount[]
}

/** The usage counters of a gateway without a database. A file keeps them, and the quota counters, across restarts. */
export class FileUsageCounts extends UsageCounts {
  readonly #path: string
  readonly #counters: MemoryCounters
  readonly #now: () => number

  constructor (path: string, records: Records, counters: MemoryCounters, now: () => number) {
    super(records)
    this.#path = path
    this.#counters = counters
    this.#now = now
  }

  override async load (): Promise<void> {
    const text = await readFile(this.#path, 'utf8').catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return '{}'
      throw error
    })
    const saved: unknown = JSON.parse(text)
    if (!isPlainObject(saved) || !Array.isArray(saved.usage) || !Array.isArray(saved.quotas)) return
    const { at, quotas, usage } = saved as unknown as Saved
    for (const [key, count, left] of quotas) {
      const window = at + left - this.#now()
      if (window > 0) await this.#counters.take(key, count, window)
    }
    await this.add(usage)
  }

  override async save (): Promise<void> {
    const today = this.#now()
    const days = Array.from({ length: usageRetentionDays + 1 }, (_, ago) => new Date(today - ago * 86_400_000))
    const usage = await this.list(days.map((day) => day.toISOString().slice(0, 10)))
    const saved: Saved = { at: today, quotas: this.#counters.list(quotaKeyPrefix), usage }
    await replaceFileAtomically(this.#path, Buffer.from(JSON.stringify(saved)))
  }
}

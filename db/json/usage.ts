import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { makeFolder } from '../folder.ts'
import type { MemoryCounters } from '../memory/counters.ts'
import { addCounts, usageKeyOf, usageRetentionDays, type UsageCount, type UsageCounts } from '../ports/usage.ts'
import { recordCollections } from '../records.ts'
import { quotaKeyPrefix } from '../store.ts'
import { replaceFileAtomically } from './write.ts'

/**
 * The content of the file of the quota counters. `at`: the time at which it was saved, in ms since 1970; `quotas`: the
 * counters, with the time that was left until their reset, in ms.
 */
interface SavedQuotas {
  readonly at: number
  readonly quotas: Array<[key: string, count: number, left: number]>
}

const quotasFileName = 'quotas.json'
const dayFilePattern = /^\d{4}-\d\d-\d\d\.json$/
const fileNameOf = (day: string): string => `${day}.json`
const dayInMs = 86_400_000
const { maxEntries } = recordCollections.usage
/** Number of counters that are written in one turn of the event loop. */
const countersPerTurn = 1_000

/**
 * The usage counters of a gateway without a database. They are in memory and, for a restart, in one file per day, so
 * that a save writes only the days that have changed. The quota counters are in another file of the same folder.
 */
export class FileUsageCounts implements UsageCounts {
  readonly #folder: string
  readonly #counters: MemoryCounters
  readonly #now: () => number
  /** The counters of each day, by `usageKeyOf`. */
  readonly #days = new Map<string, Map<string, UsageCount>>()
  /** The days that have changed since they were saved. */
  readonly #changed = new Set<string>()

  constructor (folder: string, counters: MemoryCounters, now: () => number) {
    this.#folder = folder
    this.#counters = counters
    this.#now = now
  }

  async add (counts: readonly UsageCount[]): Promise<void> {
    for (const count of counts) {
      const counters = this.#days.get(count.day) ?? new Map<string, UsageCount>()
      const key = usageKeyOf(count)
      if (counters.size >= maxEntries && !counters.has(key)) continue
      this.#days.set(count.day, counters.set(key, addCounts(count, counters.get(key))))
      this.#changed.add(count.day)
    }
  }

  async list (days: readonly string[]): Promise<UsageCount[]> {
    return days.flatMap((day) => [...this.#days.get(day)?.values() ?? []])
  }

  async load (): Promise<void> {
    const failures: unknown[] = []
    for (const name of await readdir(this.#folder).catch((): string[] => [])) {
      try {
        if (name === quotasFileName) await this.#loadQuotas(await this.#read(name) as SavedQuotas)
        if (dayFilePattern.test(name)) await this.add(await this.#read(name) as UsageCount[])
      } catch (error) {
        failures.push(error)
      }
    }
    this.#changed.clear()
    if (failures.length > 0) throw new AggregateError(failures, 'Files of usage counters are damaged')
  }

  async save (): Promise<void> {
    makeFolder(this.#folder, 'DATA_DIR')
    const quotas: SavedQuotas = { at: this.#now(), quotas: this.#counters.list(quotaKeyPrefix) }
    await this.#write(quotasFileName, JSON.stringify(quotas))
    for (const day of [...this.#changed]) {
      this.#changed.delete(day)
      try {
        await this.#write(fileNameOf(day), await this.#toJson(day))
      } catch (error) {
        this.#changed.add(day)
        throw error
      }
    }
    await this.#removeOldDays()
  }

  /** Serializes the counters of a day, in several turns of the event loop if there are many. */
  async #toJson (day: string): Promise<string> {
    const counts = await this.list([day])
    const parts: string[] = []
    for (let start = 0; start < counts.length; start += countersPerTurn) {
      if (start > 0) await turn()
      parts.push(JSON.stringify(counts.slice(start, start + countersPerTurn)).slice(1, -1))
    }
    return `[${parts.join(',')}]`
  }

  /** Removes the days before the retention period, and the oldest ones while there are more than `maxEntries`. */
  async #removeOldDays (): Promise<void> {
    const oldest = new Date(this.#now() - usageRetentionDays * dayInMs).toISOString().slice(0, 10)
    let total = 0
    for (const day of [...this.#days.keys()].sort().reverse()) {
      if (day >= oldest && total < maxEntries) total += this.#days.get(day)?.size ?? 0
      else {
        await rm(join(this.#folder, fileNameOf(day)), { force: true })
        this.#days.delete(day)
      }
    }
  }

  async #loadQuotas ({ at, quotas }: SavedQuotas): Promise<void> {
    for (const [key, count, left] of quotas) {
      const window = at + left - this.#now()
      if (window > 0) await this.#counters.take(key, count, window)
    }
  }

  async #read (name: string): Promise<unknown> {
    return JSON.parse(await readFile(join(this.#folder, name), 'utf8'))
  }

  async #write (name: string, text: string): Promise<void> {
    await replaceFileAtomically(join(this.#folder, name), Buffer.from(text))
  }
}

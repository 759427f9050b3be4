import { randomUUID } from 'node:crypto'
import type { PinStore, StoredPins } from '../ports/pins.ts'
import { recordCollections, type Records } from '../records.ts'

const collection = recordCollections.pins

/** Pinned definitions as records, which all replicas share. */
export class RecordedPins implements PinStore {
  readonly isShared = true
  readonly #records: Records

  constructor (records: Records) {
    this.#records = records
  }

  async find (server: string): Promise<StoredPins | undefined> {
    const found = await this.#records.find(collection, server)
    return found === undefined ? undefined : { value: found.value, version: found.version }
  }

  async swap (server: string, before: string | undefined, value: object): Promise<string | undefined> {
    const version = randomUUID()
    const entry = { key: server, value, version, labels: [`server:${server}`] }
    return await this.#records.swap(collection, before, entry) ? version : undefined
  }

  async remove (servers: readonly string[]): Promise<void> {
    for (const server of servers) await this.#records.remove(collection, server)
  }

  async list (time?: number): Promise<Array<{ server: string, version: string }>> {
    const found = await this.#records.list(collection, time === undefined ? {} : { changedWithin: time }, true)
    return found.map(({ labels: [label = ''], version }) => ({ server: label.slice('server:'.length), version }))
  }
}

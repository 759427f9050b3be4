import { randomUUID } from 'node:crypto'
import { recordCollections, RecordPort } from '../records.ts'

const { pins } = recordCollections

/** The pinned definitions of a server, as plain JSON. `version`: an id that changes with each write. */
export interface StoredPins { readonly value: unknown, readonly version: string }

/**
 * Stores the pinned definitions of servers, one entry per server. Each method throws StorageError while the database is
 * unavailable.
 */
export interface PinStore {
  /** Whether all replicas share the entries. */
  readonly isShared: boolean
  find: (server: string) => Promise<StoredPins | undefined>
  /**
   * Stores the pinned definitions of a server if the stored entry still has a given version.
   * @param version the version of the entry to replace; undefined if none is stored yet
   * @returns the new version; undefined if the entry has changed in the meantime
   */
  swap: (server: string, version: string | undefined, value: object) => Promise<string | undefined>
  /** Removes the entries of servers. */
  remove: (servers: readonly string[]) => Promise<void>
  /**
   * Lists the servers that have entries, with the versions of the entries.
   * @param time if given, only entries that were changed within the last `time` ms are listed
   */
  list: (time?: number) => Promise<Array<{ readonly server: string, readonly version: string }>>
}

/** Stores pinned definitions as records, which all replicas share. */
export class RecordPinStore extends RecordPort implements PinStore {
  readonly isShared = true
  async find (server: string): Promise<StoredPins | undefined> {
    const found = await this.records.find(pins, server)
    return found === undefined ? undefined : { value: found.value, version: found.version }
  }

  async swap (server: string, before: string | undefined, value: object): Promise<string | undefined> {
    const version = randomUUID()
    const entry = { key: server, value, version, labels: [`server:${server}`] }
    return await this.records.swap(pins, before, entry) ? version : undefined
  }

  async remove (servers: readonly string[]): Promise<void> {
    for (const server of servers) await this.records.remove(pins, server)
  }

  async list (time?: number): Promise<Array<{ server: string, version: string }>> {
    const found = await this.records.list(pins, time === undefined ? {} : { changedWithin: time }, true)
    return found.map(({ labels: [label = ''], version }) => ({ server: label.slice('server:'.length), version }))
  }
}

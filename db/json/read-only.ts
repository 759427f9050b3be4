import type { SettingsDocument } from '../apply.ts'
import { parseSnapshot } from '../document.ts'
import { StorageError, type Snapshot, type Store } from '../store.ts'
import type { SectionAccess } from './section.ts'

const readOnlyMessage = 'These settings are open for reading only. Nothing was changed.'

/** A read-only store of settings that were already read from a file. It neither watches nor writes the file. */
export class ReadOnlyFileStore implements Store, SectionAccess {
  readonly #document: SettingsDocument

  constructor (document: SettingsDocument) { this.#document = document }

  async load (): Promise<Snapshot> { return parseSnapshot(this.#document, 1).snapshot }

  async commit (): Promise<never> { throw new StorageError(readOnlyMessage, false) }

  onChange (): () => void { return () => {} }

  health (): undefined {}

  readSection (name: string): unknown { return this.#document[name] }

  async updateSections (): Promise<never> { throw new StorageError(readOnlyMessage, false) }

  async close (): Promise<void> {}
}

import type { Document } from '../apply.ts'
import { read } from '../document.ts'
import { StorageError, type Snapshot, type Store } from '../store.ts'
import type { SectionFile } from './section.ts'

const refusal = 'These settings are only looked at. Nothing was changed.'

/** Settings that are read once, and neither watched nor written. */
export class FrozenFile implements Store, SectionFile {
  readonly #document: Document

  constructor (document: Document) { this.#document = document }

  async load (): Promise<Snapshot> { return read(this.#document, 1).snapshot }

  async commit (): Promise<never> { throw new StorageError(refusal, false) }

  onChange (): () => void { return () => {} }

  health (): undefined {}

  section (name: string): unknown { return this.#document[name] }

  async updateSections (): Promise<never> { throw new StorageError(refusal, false) }

  async close (): Promise<void> {}
}

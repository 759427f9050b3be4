import { readFile } from 'node:fs/promises'
import type { Snapshot, Store } from '../store.ts'
import { toSnapshot } from './document.ts'

/** The settings file, read. A file that is there but cannot be read is never taken for an empty one. */
export class JsonFileStore implements Store {
  readonly #path: string

  constructor (path: string) {
    this.#path = path
  }

  async load (): Promise<Snapshot> {
    let bytes: Buffer
    try {
      bytes = await readFile(this.#path)
    } catch (error) {
      const reason = error instanceof Error && 'code' in error ? error.code : undefined
      if (reason === 'ENOENT') return toSnapshot({}, 1)
      throw new Error(`The settings file ${this.#path} cannot be read (${String(reason)}). Check that it is a file and that this user may read it.`)
    }
    return toSnapshot(parse(bytes, this.#path), 1)
  }
}

function parse (bytes: Buffer, path: string): Record<string, unknown> {
  const refuse = (why: string): Error => new Error(`The settings file ${path} ${why}. It was left as it is: mend it, or move it away to start with an empty one.`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refuse('is not UTF-8 text')
  }
  if (text.trim() === '') throw refuse('is empty')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw refuse(`is not valid JSON (${error instanceof Error ? error.message.replace(/\s+/g, ' ').slice(0, 120) : ''})`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refuse('does not hold a JSON object')
  return value as Record<string, unknown>
}

import { JsonFileStore } from './json/file.ts'
import type { Store } from './store.ts'

export interface StoreOptions {
  /** The settings file. */
  settingsPath: string
  /** A database instead of it. */
  dbUrl?: string
  /** Told in a sentence of what happens between calls: an edit on disk that cannot be used. */
  warn: (sentence: string) => void
}

/** The store that the environment asks for, not loaded yet. The only place that knows there is more than one kind. */
export async function openStore ({ settingsPath, dbUrl, warn }: StoreOptions): Promise<Store> {
  if (dbUrl !== undefined) throw new Error('DB_URL is not supported yet')
  return new JsonFileStore(settingsPath, warn)
}

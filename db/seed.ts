import { readFile } from 'node:fs/promises'
import { isObject, type Document } from './apply.ts'
import { read } from './document.ts'
import { parse } from './json/parse.ts'

/**
 * What a settings file holds; it is only read.
 * @returns undefined: there is no such file
 * @throws Error with a sentence when it is there and cannot be used
 */
export async function readSettings (path: string): Promise<Document | undefined> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    if (code === 'ENOENT') return undefined
    throw new Error(`The settings file ${path} cannot be read (${code}). Check that it is a file and that this user may read it.`)
  }
  const document = parse(bytes, path)
  try {
    read(document, 1)
  } catch (error) {
    throw new Error(
      `The settings file ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}. It was left as it is: mend it.`
    )
  }
  return document
}

/**
 * The document that an empty database begins with: the settings file's, its servers private. Where nobody had chosen a visibility,
 * a mark says so.
 * @param warn told which servers were public
 */
export async function seed (path: string, warn: (sentence: string) => void): Promise<Document> {
  const document = await readSettings(path) ?? {}
  const { mcpServers } = document
  if (!isObject(mcpServers)) return document
  const open = Object.entries(mcpServers)
    .filter(([, config]) => isObject(config) && config.visibility === 'public' && config.visibilityDefaulted !== true)
    .map(([name]) => JSON.stringify(name))
  if (open.length > 0) {
    warn(
      `${open.length} public servers of the settings file became private in the database: ${open.slice(0, 20).join(', ')}${open.length > 20 ? ' …' : ''}. Give them visibility "public" again if that is wanted.`
    )
  }
  return { ...document, mcpServers: Object.fromEntries(Object.entries(mcpServers).map(([name, config]) => [name, toPrivate(config)])) }
}

const toPrivate = (config: unknown): unknown =>
  isObject(config)
    ? { ...config, visibility: 'private', ...(config.visibility === undefined ? { visibilityDefaulted: true } : {}) }
    : config

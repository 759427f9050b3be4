import { readFile } from 'node:fs/promises'
import { adopt } from '../schemas/foreign-config.ts'
import { isObject, type Document } from './apply.ts'
import { read } from './document.ts'
import { errorCode } from './error-code.ts'
import { readError } from './json/load.ts'
import { parse } from './json/parse.ts'
import { orderedEntries, orderedObject } from './order.ts'

/**
 * Reads and checks a settings file, without a lock.
 * @returns undefined: the file does not exist
 * @throws Error when the file exists and cannot be used
 */
export async function readSettings (path: string): Promise<Document | undefined> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw readError(error, path)
  }
  const document = parse(bytes, path)
  try {
    read(document, 1)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`The settings file ${path} cannot be used: ${reason}. It was left as it is: correct it.`)
  }
  return document
}

/**
 * Returns the first content of an empty database: the settings file with all servers private. Servers without a visibility are marked by
 * `visibilityDefaulted`.
 * @param warn receives a message that lists the servers that were public
 */
export async function seed (path: string, warn: (message: string) => void): Promise<Document> {
  const document = await readSettings(path)
  if (document === undefined) return {}
  const counted = countEntries(document)
  if (counted !== '') {
    warn(`The database was empty, and takes what is in the settings file ${path}: ${counted}. The file is not read any more.`)
  }
  const { mcpServers } = document
  if (!isObject(mcpServers)) return document
  const publicServers = Object.entries(mcpServers)
    .filter(([, config]) => isObject(config) && config.visibility === 'public' && config.visibilityDefaulted !== true)
    .map(([name]) => JSON.stringify(name))
  if (publicServers.length > 0) {
    warn(
      `${publicServers.length} public servers of the settings file became private in the database: ` +
      `${publicServers.slice(0, 20).join(', ')}${publicServers.length > 20 ? ' …' : ''}. ` +
      'Set their visibility to "public" again if you want that.'
    )
  }
  return { ...document, mcpServers: orderedObject(orderedEntries(mcpServers).map(([name, config]) => [name, toPrivate(config)])) }
}

/** How many entries each section has, as a list for a sentence. */
function countEntries (document: Document): string {
  const nouns = { mcpServers: 'server', groups: 'group', users: 'user', bearerKeys: 'key', prompts: 'prompt', resources: 'resource' }
  return Object.entries(nouns).flatMap(([section, noun]) => {
    const value = document[section]
    const count = Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 0
    return count === 0 ? [] : [`${count} ${noun}${count === 1 ? '' : 's'}`]
  }).join(', ')
}

/** Private, and in the gateway's own members: only what stands in those is sealed. */
const toPrivate = (config: unknown): unknown =>
  isObject(config)
    ? { ...adopt(config).config, visibility: 'private', ...(config.visibility === undefined ? { visibilityDefaulted: true } : {}) }
    : config

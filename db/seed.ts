import { readFile } from 'node:fs/promises'
import { translateConfig } from '../schemas/foreign-config.ts'
import type { SettingsDocument } from './apply.ts'
import { isPlainObject } from '../schemas/unknown-members.ts'
import { parseSnapshot, type ParsedSettings } from './document.ts'
import { entities, entityNames } from './entities.ts'
import { errorCode, messageOf } from './errors.ts'
import { toReadError } from './json/load.ts'
import { parseSettings } from './json/parse.ts'
import { orderedEntries, createOrderedObject } from './order.ts'

/**
 * Reads and validates a settings file, without locking it.
 * @returns undefined if the file does not exist
 * @throws Error when the file exists and is unusable
 */
export async function readSettings (path: string): Promise<SettingsDocument | undefined> {
  return (await readSettingsFile(path))?.document
}

/** Does the same as `readSettings`, but also returns the snapshot and its problems. */
async function readSettingsFile (path: string): Promise<ParsedSettings | undefined> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw toReadError(error, path)
  }
  const document = parseSettings(bytes, path)
  try {
    return parseSnapshot(document, 1)
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(`The settings file ${path} cannot be used: ${reason}. It was not changed: correct it.`)
  }
}

/** The initial content of an empty database, and the messages to log once it is stored. */
export interface Seed { readonly document: SettingsDocument, readonly messages: readonly string[] }

/**
 * Returns the initial content of an empty database: the content of the settings file, with all servers made private; an
 * empty document if there is no file.
 * @throws Error when the file exists and is unusable
 */
export async function readSeed (path: string): Promise<Seed> {
  const reading = await readSettingsFile(path)
  const messages: string[] = []
  if (reading === undefined) return { document: {}, messages }
  const { document, sections } = reading
  const counted = countEntries(document)
  if (counted !== '') {
    messages.push(`The database was empty, and was initialized from the settings file ${path}: ${counted}. The file ` +
      'is no longer read.')
  }
  // The API shows unusable servers with their problems, and can correct them, but does not show other unusable entries.
  const { mcpServers: _, ...others } = sections
  if (Object.values(others).some(({ problems }) => problems.length > 0)) {
    messages.push(
      'The database also contains the ignored entries of the settings file. To correct them, replace the whole ' +
      'settings: `npm run db:export <file>`, correct the file, `npm run db:import <file> -- --replace`.'
    )
  }
  const { mcpServers } = document
  if (!isPlainObject(mcpServers)) return { document, messages }
  const publicServers = Object.entries(mcpServers)
    .filter(([, config]) => isPlainObject(config) && config.visibility === 'public')
    .map(([name]) => JSON.stringify(name))
  if (publicServers.length > 0) {
    messages.push(
      `${publicServers.length} public server${publicServers.length === 1 ? '' : 's'} of the settings file became ` +
      `private in the database: ${publicServers.slice(0, 20).join(', ')}${publicServers.length > 20 ? ' …' : ''}. ` +
      'Set the visibility to "public" again if you want that.'
    )
  }
  const servers = createOrderedObject(orderedEntries(mcpServers).map(([name, config]) => [name, toPrivate(config)]))
  return { document: { ...document, mcpServers: servers }, messages }
}

/** Returns the number of entries in each section that has any, as in `2 servers, 1 key`; empty if there are none. */
function countEntries (document: SettingsDocument): string {
  return entityNames.flatMap((section) => {
    const { noun } = entities[section]
    const value = document[section]
    const count = Array.isArray(value) ? value.length : isPlainObject(value) ? Object.keys(value).length : 0
    return count === 0 ? [] : [`${count} ${noun}${count === 1 ? '' : 's'}`]
  }).join(', ')
}

/**
 * Returns a server's config made private, in the gateway's own format (`translateConfig`), since the database encrypts
 * only secrets in members of that format.
 */
const toPrivate = (config: unknown): unknown =>
  isPlainObject(config) ? { ...translateConfig(config).config, visibility: 'private' } : config

import { orderedEntries } from '../../../db/order.ts'
import { readForeign, type ForeignServer } from '../../../schemas/foreign-document.ts'
import { errors } from '../../base/errors/index.ts'

/** Max servers of one request. */
const mostEntries = 1_000

/**
 * The servers of a request, in its order: a list, or the configuration file of a client.
 * @returns `warnings`: sentences about the other members of such a file
 * @throws InvalidInput
 */
export function serverEntries (body: unknown): { servers: readonly ForeignServer[], warnings: string[] } {
  const document = readForeign(body, orderedEntries)
  if (document === undefined || document.servers.length === 0) {
    throw new errors.InvalidInput('"servers": expected a list of {"name": "…", "config": {…}}, or "mcpServers": {"<name>": {…}}')
  }
  const { servers, members } = document
  if (servers.length > mostEntries) throw new errors.InvalidInput(`There are ${servers.length} servers; send ${mostEntries} at most`)
  return { servers, warnings: members.slice(0, 20).map((name) => `${JSON.stringify(name)} holds no servers, and is not stored`) }
}

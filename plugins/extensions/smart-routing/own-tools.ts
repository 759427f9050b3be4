import { extensionsLimits } from '../limits.ts'

/** The tools of `$smart`. */
export const names = { search: 'search_tools', describe: 'describe_tool', call: 'call_tool' } as const

/** What a client is told that names an unknown tool. */
export const hint = `. ${names.search} finds the names of tools, and ${names.call} calls them`

/** Bounds of `limit`, the number of tools that a search finds. */
export const range = { least: 1, most: 100, usual: 10 } as const

const nameSchema = { type: 'string', description: `A name that ${names.search} found` }

/**
 * The tools of `$smart` as they are listed: as few words as do, since every agent reads them.
 * @param servers that have tools the caller sees
 * @param progressive schemas are left out of what is found, and shown by a tool of their own
 */
export function ownTools (servers: readonly string[], progressive: boolean): Array<{ name: string }> {
  const search = {
    name: names.search,
    description: `Finds tools by what they do. ${progressive ? `Next: ${names.describe}, ` : 'Next: '}${names.call}. ` +
      `${behind(servers)}`,
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What is to be done, in some words' },
        limit: { type: 'integer', minimum: range.least, maximum: range.most, default: range.usual }
      },
      required: ['query']
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }
  const describe = {
    name: names.describe,
    description: 'Shows one tool with its input schema.',
    inputSchema: { type: 'object', properties: { toolName: nameSchema }, required: ['toolName'] },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }
  const call = {
    name: names.call,
    description: `Calls a tool that ${names.search} found.`,
    inputSchema: {
      type: 'object',
      properties: { toolName: nameSchema, arguments: { type: 'object', description: 'As its inputSchema says' } },
      required: ['toolName']
    }
  }
  return progressive ? [search, describe, call] : [search, call]
}

/** The sentence that names the servers, of bounded length. */
export function behind (servers: readonly string[]): string {
  const named: string[] = []
  let left: number = extensionsLimits.smartRouting.servers
  for (const server of servers) {
    left -= server.length + 2
    if (left < 0) break
    named.push(server)
  }
  const more = servers.length - named.length
  if (servers.length === 0) return 'There are no servers now.'
  return `Servers: ${named.join(', ')}${more > 0 ? `${named.length > 0 ? ' and ' : ''}${more} more` : ''}.`
}

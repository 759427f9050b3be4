import { extensionsLimits } from '../limits.ts'

/** The tools of `$smart`. */
export const names = { search: 'search_tools', describe: 'describe_tool', call: 'call_tool' } as const

/** Appended to the error for an unknown tool name. */
export const hint = `. ${names.search} finds the names of tools, and ${names.call} calls them`

/** Min, max and default of `limit`, the number of search results. */
export const range = { least: 1, most: 100, usual: 10 } as const

const nameSchema = { type: 'string', description: `A name that ${names.search} found` }

/**
 * The tools of `$smart`, as `tools/list` returns them. Their texts are short, since every agent reads them.
 * @param servers the servers whose tools the caller sees
 * @param progressive search results omit schemas, and `describe_tool` returns them
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

/** A sentence of bounded length that names the servers. */
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

import { extensionsLimits } from '../limits.ts'

/** The names of the tools of `$smart`. */
export const smartToolNames = { search: 'search_tools', describe: 'describe_tool', call: 'call_tool' } as const

/** The text that is appended to the error message about an unknown tool name. */
export const unknownToolHint =
  `. ${smartToolNames.search} finds the names of tools, and ${smartToolNames.call} calls them`

/** The range and the default of `limit`, the max number of results of `search_tools`. */
export const searchLimitRange = { min: 1, max: 100, default: 10 } as const

const nameSchema = { type: 'string', description: `A name that ${smartToolNames.search} found` }

/**
 * Returns the tools of `$smart`, as in `tools/list`. Their texts are short, since every agent reads them.
 * @param servers the servers whose tools the caller sees
 * @param isProgressive whether search results omit schemas, which `describe_tool` then returns
 */
export function createSmartTools (servers: readonly string[], isProgressive: boolean): Array<{ name: string }> {
  const search = {
    name: smartToolNames.search,
    description: `Finds tools by what they do. ${isProgressive
      ? `Next: ${smartToolNames.describe}, `
      : 'Next: '}${smartToolNames.call}. ` +
      `${serversSentence(servers)}`,
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'The task, in a few words' },
        limit: {
          type: 'integer',
          minimum: searchLimitRange.min,
          maximum: searchLimitRange.max,
          default: searchLimitRange.default
        }
      },
      required: ['query']
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }
  const describe = {
    name: smartToolNames.describe,
    description: 'Shows one tool with its input schema.',
    inputSchema: { type: 'object', properties: { toolName: nameSchema }, required: ['toolName'] },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }
  const call = {
    name: smartToolNames.call,
    description: `Calls a tool that ${smartToolNames.search} found.`,
    inputSchema: {
      type: 'object',
      properties: {
        toolName: nameSchema,
        arguments: { type: 'object', description: 'Arguments that match its inputSchema' }
      },
      required: ['toolName']
    }
  }
  return isProgressive ? [search, describe, call] : [search, call]
}

/** Returns a sentence that names the servers. Of many servers, it names the first ones and the number of the others. */
export function serversSentence (servers: readonly string[]): string {
  const named: string[] = []
  let left: number = extensionsLimits.smartRouting.serverListLength
  for (const server of servers) {
    left -= server.length + 2
    if (left < 0) break
    named.push(server)
  }
  const more = servers.length - named.length
  if (servers.length === 0) return 'There are no servers now.'
  return `Servers: ${named.join(', ')}${more > 0 ? `${named.length > 0 ? ' and ' : ''}${more} more` : ''}.`
}

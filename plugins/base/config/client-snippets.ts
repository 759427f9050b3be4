/** How to connect one client, as text to paste. `where`: a shell, or the file for the text; `needs`: a prerequisite. */
interface Snippet { readonly client: string, readonly where: string, readonly needs?: string, readonly text: string }

/** The endpoint and the key that clients are given. */
interface Access { readonly url: string, readonly key: string }

const json = (value: object): string => JSON.stringify(value, null, 2)

/** Configurations for the commonest clients. */
function clientSnippets ({ url, key }: Access): Snippet[] {
  const authorization = `Bearer ${key}`
  const header = `"Authorization: ${authorization}"`
  const server = { type: 'http', url, headers: { Authorization: authorization } }
  const args = ['-y', 'mcp-remote', url, '--transport', 'http-only', '--header', 'Authorization:$' + '{TOOL_HUB_AUTH}']
  const bridged = { command: 'npx', args, env: { TOOL_HUB_AUTH: authorization } }
  return [
    {
      client: 'Claude Code',
      where: 'shell',
      text: `claude mcp add --scope user --transport http tool-hub ${url} --header ${header}`
    },
    {
      client: 'Gemini CLI',
      where: 'shell',
      text: `gemini mcp add --scope user --transport http --header ${header} tool-hub ${url}`
    },
    { client: 'Cursor', where: '~/.cursor/mcp.json', text: json({ mcpServers: { 'tool-hub': server } }) },
    { client: 'VS Code', where: '.vscode/mcp.json', text: json({ servers: { 'tool-hub': server } }) },
    {
      client: 'Claude Desktop',
      where: 'claude_desktop_config.json',
      text: json(
        { mcpServers: { 'tool-hub': bridged } }
      )
    },
    {
      client: 'MCP Inspector',
      where: 'shell',
      needs: 'Node 22.19 or newer',
      text: `npx @modelcontextprotocol/inspector --cli ${url} --transport http --header ${header} --method tools/list`
    }
  ]
}

/** A heading and a text to paste for each client. */
export const snippetsText = (access: Access): string => clientSnippets(access)
  .map(({ client, where, needs, text }) => {
    const more = [...where === 'shell' ? [] : [where], ...needs === undefined ? [] : [`needs ${needs}`]].join('; ')
    return `${client}${more === '' ? '' : ` (${more})`}:\n\n${text}\n`
  })
  .join('\n')

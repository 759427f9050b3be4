/**
 * A text that connects one MCP client when pasted. `where`: `shell`, or the file to paste it into; `needs`: a
 * prerequisite.
 */
interface Snippet { readonly client: string, readonly where: string, readonly needs?: string, readonly text: string }

/** The endpoint URL and the bearer key for the client. */
interface Access { readonly url: string, readonly key: string }

const json = (value: object): string => JSON.stringify(value, null, 2)

/**
 * A snippet that may have a link. The link opens the client if it is installed; the client then asks the user, and adds
 * the gateway.
 */
interface LinkedSnippet extends Snippet { readonly link?: { readonly href: string, readonly label: string } }

/** Returns the snippets that the console offers. Their texts and links contain the key. */
export function linkedSnippets (access: Access): LinkedSnippet[] {
  const { url, key } = access
  const server = { type: 'http', url, headers: { Authorization: `Bearer ${key}` } }
  const forCursor = new URLSearchParams({
    name: 'tool-hub', config: Buffer.from(JSON.stringify(server)).toString('base64')
  })
  const links: Readonly<Record<string, LinkedSnippet['link']>> = {
    Cursor: {
      href: `cursor://anysphere.cursor-deeplink/mcp/install?${forCursor.toString()}`, label: 'Add to Cursor'
    },
    'VS Code': {
      href: `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: 'tool-hub', ...server }))}`,
      label: 'Add to VS Code'
    }
  }
  return [
    ...clientSnippets(access),
    {
      client: 'Windsurf',
      where: '~/.codeium/windsurf/mcp_config.json',
      text: json({ mcpServers: { 'tool-hub': { serverUrl: url, headers: server.headers } } })
    },
    {
      client: 'Codex',
      where: '~/.codex/config.toml',
      text: `[mcp_servers.tool-hub]\nurl = ${JSON.stringify(url)}\nhttp_headers = { Authorization = ` +
        `${JSON.stringify(server.headers.Authorization)} }`
    }
  ].map((snippet) => ({ ...snippet, ...links[snippet.client] && { link: links[snippet.client] } }))
}

/** Returns the snippets that the first start gives to the operator. The console offers more. */
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
      text: json({ mcpServers: { 'tool-hub': bridged } })
    },
    {
      client: 'MCP Inspector',
      where: 'shell',
      needs: 'Node 22.19 or newer',
      text: `npx @modelcontextprotocol/inspector --cli ${url} --transport http --header ${header} --method tools/list`
    }
  ]
}

/** Returns, as one text, the snippets that the first start gives to the operator, with a heading for each client. */
export const snippetsText = (access: Access): string => clientSnippets(access)
  .map(({ client, where, needs, text }) => {
    const more = [...where === 'shell' ? [] : [where], ...needs === undefined ? [] : [`needs ${needs}`]].join('; ')
    return `${client}${more === '' ? '' : ` (${more})`}:\n\n${text}\n`
  })
  .join('\n')

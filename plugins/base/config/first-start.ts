import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { snippetsText } from './client-snippets.ts'

/** A text as one word of a shell. */
export const shellQuote = (text: string): string => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * The command line as it can be pasted into a shell, in any folder. Never by its bare name: a registry may have another program of that
 * name.
 * @param script the script of this process
 */
export function commandLine (script = resolve(process.argv[1] ?? '')): string {
  if (/^server\.[jt]s$/.test(basename(script))) {
    const built = join(dirname(script), 'cli/main.js')
    const source = join(dirname(script), 'cli/main.ts')
    const tsx = join(dirname(script), 'node_modules/tsx/dist/loader.mjs')
    return existsSync(built) ? `node ${shellQuote(built)}` : `node --import ${shellQuote(tsx)} ${shellQuote(source)}`
  }
  return basename(script).endsWith('.js') ? `node ${shellQuote(script)}` : shellQuote(script)
}

/** The address at which this machine reaches a gateway by loopback; undefined: it does not listen there. */
export function localUrl (base: string): string | undefined {
  const url = new URL(base)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1'
  const isLocal = url.hostname === 'localhost' || url.hostname === '[::1]' || url.hostname.startsWith('127.')
  return isLocal ? url.href.replace(/\/$/, '') : undefined
}

/** The first lines of a first start, before anything else can fail. @param place where a hash of the password is kept */
export function firstLines (
  { base, admin, place }: { base: string, admin: { username: string, password?: string }, place: string }
): string {
  const { username, password } = admin
  const sentence = password === undefined
    ? `The first admin is "${username}", with the password of ADMIN_PASSWORD.`
    : `The first admin is "${username}" with password "${password}". It is shown only once; ${place} keeps a hash of it.`
  return `\nMCP endpoint:        ${base}/mcp\nAPI, to try in /docs: ${base}/docs\n\n${sentence}\n`
}

/**
 * What follows once the gateway is ready. It is plain text even where the log is JSON, so that it can be pasted.
 * @param key undefined: there are keys already
 * @param addWith the command line, where there are no servers yet
 */
export function furtherLines ({ url, key, addWith }: { url: string, key: string | undefined, addWith: string | undefined }): string {
  const lines: string[] = []
  if (key !== undefined) {
    lines.push(
      '', 'A key for your agents, shown only once. It opens MCP, and not the management API:', '', key, '',
      'Connect a client with it:', '', snippetsText({ url, key })
    )
  }
  if (addWith !== undefined) {
    const add = `${addWith} add everything --wait -- npx -y @modelcontextprotocol/server-everything`
    const call = `${addWith} call everything echo message=Hello`
    lines.push('', 'Add a first server, and call a tool, in another terminal:', '', `${add} && ${call}`, '')
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

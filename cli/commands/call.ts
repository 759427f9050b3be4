import type { Command } from 'commander'
import { isObject } from '../../protocol/json.ts'
import { piped } from '../io.ts'
import { segment, withApi, type Run } from '../context.ts'
import { exits, CommandError } from '../errors.ts'
import { jsonOf } from './server-config.ts'
import { serverPath, type ServerRow } from './servers.ts'

interface Content {
  type: string, text?: string, mimeType?: string, uri?: string, resource?: { uri?: string, text?: string }
}
interface Result { content?: Content[], isError?: boolean, structuredContent?: unknown }
interface Tool { name?: string, inputSchema?: { properties?: Record<string, { type?: string | string[] }> } }

export function addCallCommand (program: Command, run: Run): void {
  program.command('call')
    .description('call a tool of a server')
    .argument('<server>')
    .argument('<tool>')
    .argument('[arguments...]', 'name=text, name:=json, or one JSON object; - reads it from stdin')
    .action(async (server: string, tool: string, given: string[], _options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const args = await argumentsOf(run, given, async () =>
          (await api.get<ServerRow>(serverPath(server))).tools.find(({ name }) => name === tool) as Tool | undefined)
        const body = { toolName: tool, arguments: args }
        const path = `/api/tools/call/${segment(server)}`
        const { data } = await api.whole<{ data: Result }>('POST', path, body).catch(async (error: unknown) => {
          if (!(error instanceof CommandError) || error.code !== 'TH_NO_SUCH') throw error
          // The API reports the tools of a server that is not connected as unknown.
          const record = await api.get<ServerRow>(serverPath(server)).catch(() => undefined)
          if (record && record.status !== 'connected') {
            const reason = record.error === null ? '' : `: ${record.error}`
            throw new CommandError(`${server} is ${record.status}${reason}`, error.exit, error.code)
          }
          const hint = `tool-hub list shows the servers, tool-hub list ${server} its tools`
          throw new CommandError(`${error.message}. ${hint}`, error.exit, error.code)
        })
        out.result(data, () => (data.content ?? []).map((each) => textOf(run, each)).join('\n'))
        if (data.isError === true) throw new CommandError('The tool answered with an error', exits.toolError)
      }, true)
    })
}

/** The text of a content block. At a terminal, control characters are replaced. */
function textOf ({ stdout }: Run, { type, text, mimeType, uri, resource }: Content): string {
  const shown = text ?? resource?.text
  if (shown === undefined) {
    return `[${[type, mimeType, uri ?? resource?.uri].filter((part) => part !== undefined).join(' ')}]`
  }
  return stdout.isTTY === true ? shown.replace(/(?![\t\n])[\p{Cc}]/gu, '�') : shown
}

/** Parses the arguments of a call. @param toolOf finds the tool, for the types of its arguments @throws CommandError */
async function argumentsOf (
  run: Run,
  given: readonly string[],
  toolOf: () => Promise<Tool | undefined>
): Promise<Record<string, unknown>> {
  const [first = '{}'] = given
  if (given.length <= 1 && (first === '-' || first.trimStart().startsWith('{'))) {
    const value = jsonOf(first === '-' ? await piped(run) : first, 'The argument')
    if (!isObject(value)) throw new CommandError('The argument must be a JSON object', exits.usage)
    return value
  }
  const properties = (await toolOf())?.inputSchema?.properties ?? {}
  return Object.fromEntries(given.map((text) => {
    const [, name, isJson, value] = /^([^=:]+)(:?)=(.*)$/s.exec(text) ?? []
    if (name === undefined || value === undefined) {
      throw new CommandError(`${JSON.stringify(text)}: expected name=text or name:=json`, exits.usage)
    }
    return [name, isJson === ':' ? jsonOf(value, name) : typed(value, properties[name]?.type)]
  }))
}

/** Converts a text to the type of the tool's schema, if possible. */
function typed (text: string, type: string | string[] | undefined): unknown {
  const types = [type].flat()
  if (types.includes('string') || type === undefined) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

import type { Command } from 'commander'
import { isObject } from '../../protocol/json.ts'
import { piped } from '../io.ts'
import { segment, withApi, type Run } from '../context.ts'
import { exits, CommandError } from '../errors.ts'
import { jsonOf, serverPath, type ServerRow } from './servers.ts'

interface Content { type: string, text?: string, mimeType?: string, uri?: string, resource?: { uri?: string, text?: string } }
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
          // One that cannot be used has no tools, as if it were not there.
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

/** The text of a content as it is: a person asked for it. Control characters are for a program that reads a pipe. */
function textOf ({ stdout }: Run, { type, text, mimeType, uri, resource }: Content): string {
  const shown = text ?? resource?.text
  if (shown === undefined) return `[${[type, mimeType, uri ?? resource?.uri].filter((part) => part !== undefined).join(' ')}]`
  return stdout.isTTY === true ? shown.replace(/(?![\t\n])[\p{Cc}]/gu, '�') : shown
}

/** @param toolOf looks the tool up, for the types of its arguments @throws Failure */
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

/** A text as a value of the type that the tool asks for, where it is one. */
function typed (text: string, type: string | string[] | undefined): unknown {
  const types = [type].flat()
  if (types.includes('string') || type === undefined) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

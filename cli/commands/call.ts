import type { Command } from 'commander'
import { isObject } from '../../protocol/json.ts'
import { readStdin } from '../io.ts'
import { withApi, type CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { toPrintable, toPrintableText } from '../printable.ts'
import { parseJsonArgument } from './server-config.ts'
import { serverApiPath, type ApiServerRecord } from './servers.ts'

interface Content {
  type: string, text?: string, mimeType?: string, uri?: string, resource?: { uri?: string, text?: string }
}
interface Result { content?: Content[], isError?: boolean, structuredContent?: unknown }
interface Tool { name?: string, inputSchema?: { properties?: Record<string, { type?: string | string[] }> } }

/** Registers the command `call`, which calls a tool. */
export function addCallCommand (program: Command, run: CommandRun): void {
  program.command('call')
    .description('call a tool of a server')
    .argument('<server>')
    .argument('<tool>')
    .argument('[arguments...]', 'name=text, name:=json, or one JSON object; - reads it from stdin')
    .action(async (server: string, tool: string, given: string[], _options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const args = await argumentsOf(run, given, async () =>
          (
            await api.get<ApiServerRecord>(serverApiPath(server))
          ).tools.find(({ name }) => name === tool) as Tool | undefined)
        const body = { toolName: tool, arguments: args }
        const path = `/api/tools/call/${encodeURIComponent(server)}`
        const { data } = await api.request<{ data: Result }>('POST', path, body).catch(async (error: unknown) => {
          if (!(error instanceof CommandError) || error.code !== 'TH_NO_SUCH') throw error
          // The API reports the tools of a disconnected server as unknown: the server's status is a better explanation.
          const record = await api.get<ApiServerRecord>(serverApiPath(server)).catch(() => undefined)
          if (record && record.status !== 'connected') {
            const reason = record.error === null ? '' : `: ${record.error}`
            throw new CommandError(`${server} is ${record.status}${reason}`, error.exitCode, error.code)
          }
          const hint = `tool-hub list shows the servers, tool-hub list ${server} its tools`
          throw new CommandError(`${error.message}. ${hint}`, error.exitCode, error.code)
        })
        out.writeResult(data, () => (data.content ?? []).map((each) => textOf(run, each)).join('\n'))
        if (data.isError === true) throw new CommandError('The tool answered with an error', exitCodes.toolError)
      }, true)
    })
}

/** Returns a content block of a result as text. For a terminal, it is made safe. */
function textOf ({ stdout }: CommandRun, { type, text, mimeType, uri, resource }: Content): string {
  const shown = text ?? resource?.text
  if (shown === undefined) {
    return toPrintable(`[${[type, mimeType, uri ?? resource?.uri].filter((part) => part !== undefined).join(' ')}]`)
  }
  return stdout.isTTY === true ? toPrintableText(shown) : shown
}

/**
 * Parses the arguments of a call.
 * @param given the arguments on the command line: `name=text` and `name:=json`, or one JSON object, or `-` for stdin
 * @param toolOf returns the tool, whose input schema defines the types of arguments given as text
 * @throws CommandError
 */
async function argumentsOf (
  run: CommandRun,
  given: readonly string[],
  toolOf: () => Promise<Tool | undefined>
): Promise<Record<string, unknown>> {
  const [first = '{}'] = given
  if (given.length <= 1 && (first === '-' || first.trimStart().startsWith('{'))) {
    const value = parseJsonArgument(first === '-' ? await readStdin(run) : first, 'The argument')
    if (!isObject(value)) throw new CommandError('The argument must be a JSON object', exitCodes.usage)
    return value
  }
  const properties = (await toolOf())?.inputSchema?.properties ?? {}
  return Object.fromEntries(given.map((text) => {
    const [, name, isJson, value] = /^([^=:]+)(:?)=(.*)$/s.exec(text) ?? []
    if (name === undefined || value === undefined) {
      throw new CommandError(`${JSON.stringify(text)}: expected name=text or name:=json`, exitCodes.usage)
    }
    return [name, isJson === ':' ? parseJsonArgument(value, name) : convertToType(value, properties[name]?.type)]
  }))
}

/**
 * Parses the text of an argument as JSON, unless the tool's schema allows a string.
 * @param type the type in the schema; undefined if the schema states none, so that the text is returned unchanged
 * @returns the value; the text itself if it is not JSON
 */
function convertToType (text: string, type: string | string[] | undefined): unknown {
  const types = [type].flat()
  if (types.includes('string') || type === undefined) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

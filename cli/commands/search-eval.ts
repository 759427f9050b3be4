import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { packageVersion } from '../../package.ts'
import { isObject, parseJsonObject } from '../../protocol/json.ts'
import { headerNames, latestModernVersion, metaKeys } from '../../protocol/modern/envelope.ts'
import type { ManagementApiClient } from '../api.ts'
import { withApi, type CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { parseJsonArgument } from './server-config.ts'

/** A question, and the names of the expected tools as `search_tools` returns them. Finding one of them is enough. */
interface Question { readonly question: string, readonly tools: readonly string[] }
/**
 * A question with the names of the tools that were found. `place`: the position of the first expected tool among them,
 * from 1; null if there is none.
 */
interface SearchOutcome extends Question { readonly place: number | null, readonly found: readonly string[] }

/** The max number of results of each search. */
const limit = 10

/** Registers the command `search-eval`, which measures smart routing with questions whose answers are known. */
export function addSearchEvalCommand (program: Command, run: CommandRun): void {
  program.command('search-eval')
    .description('measure how well $smart finds the expected tools')
    .argument(
      '<file>', 'JSON: [{"question": "write to Ada", "tool": "mail-send"}]; for a list of tools, one of them is enough'
    )
    .option('--route <name>', 'search the tools of this group or server')
    .action(async (file: string, { route }: { route?: string }, command: Command) => {
      const text = await readFile(resolve(run.cwd, file), 'utf8').catch((error: unknown) => {
        throw new CommandError(`${file} cannot be read: ${String(error)}`, exitCodes.failed)
      })
      const questions = questionsOf(parseJsonArgument(text, file), file)
      await withApi(run, command, async ({ api, out }) => {
        const outcomes: SearchOutcome[] = []
        for (const each of questions) {
          const found = await search(api, route, each.question)
          const at = found.findIndex((name) => each.tools.includes(name))
          outcomes.push({ ...each, place: at === -1 ? null : at + 1, found })
        }
        const figures = figuresOf(outcomes)
        const missed = outcomes.filter(({ place }) => place === null || place > 5)
        out.writeResult({ ...figures, missed }, () => [
          ...Object.entries(figures).map(([name, value]) => `${name.padEnd(9)} ${value}`),
          ...missed.length === 0 ? [] : ['', 'Not among the first five:'],
          ...missed.map(({ question, tools, found: [first] }) =>
            `  ${question}\n    expected ${tools.join(' or ')}, first is ${first ?? 'nothing'}`)
        ].join('\n'))
      }, true)
    })
}

/**
 * Returns the questions in the content of a file.
 * @param value the content, parsed as JSON
 * @param file the name of the file, for error messages
 * @throws CommandError
 */
function questionsOf (value: unknown, file: string): Question[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new CommandError(`${file}: expected a list of {"question": …, "tool": …}`, exitCodes.usage)
  }
  return value.map((each: unknown, at) => {
    const { question, tool } = isObject(each) ? each : {}
    const tools = [tool].flat()
    if (typeof question === 'string' && tools.length > 0 && tools.every((name) => typeof name === 'string')) {
      return { question, tools }
    }
    throw new CommandError(`${file}: element ${at} must have "question" and "tool"`, exitCodes.usage)
  })
}

/**
 * Returns the names of the tools that `$smart` finds, best first.
 * @param route the group or server whose tools are searched; undefined for all tools
 * @throws CommandError
 */
async function search (api: ManagementApiClient, route: string | undefined, query: string): Promise<string[]> {
  const path = `/mcp/$smart${route === undefined ? '' : `/${encodeURIComponent(route)}`}`
  const params = {
    name: 'search_tools',
    arguments: { query, limit },
    _meta: {
      [metaKeys.protocolVersion]: latestModernVersion,
      [metaKeys.clientCapabilities]: {},
      [metaKeys.clientInfo]: { name: 'tool-hub', version: packageVersion() }
    }
  }
  const answer = await fetch(`${api.url}${path}`, {
    method: 'POST',
    headers: {
      ...api.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      [headerNames.version]: latestModernVersion,
      [headerNames.method]: 'tools/call',
      [headerNames.name]: params.name
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  })
  const message = messageOf(await answer.text())
  const { structuredContent } = isObject(message.result) ? message.result : {}
  if (isObject(structuredContent) && Array.isArray(structuredContent.tools)) {
    return structuredContent.tools.map((tool: unknown) => String(isObject(tool) ? tool.name : undefined))
  }
  const reason = isObject(message.error) ? message.error.message : message.message
  // Without TOOL_HUB_URL, the command line uses a local credential, which MCP routes do not accept.
  const isForbidden = answer.status === 401 || answer.status === 403
  const hint = isForbidden ? '. Set TOOL_HUB_URL to a gateway, and TOOL_HUB_KEY to a key that can see its tools' : ''
  throw new CommandError(
    `The gateway answered ${answer.status}${typeof reason === 'string' ? `: ${reason}` : ''}${hint}`,
    isForbidden ? exitCodes.forbidden : exitCodes.failed
  )
}

/** Parses the JSON object in a response or, if it is a stream, in the last event. Returns `{}` if there is none. */
function messageOf (text: string): Record<string, unknown> {
  const data = text.split('\n').findLast((line) => line.startsWith('data:'))?.slice('data:'.length) ?? text
  return parseJsonObject(data) ?? {}
}

/**
 * Returns the number of questions; the shares of questions with an expected tool among the first 1, 5 and 10 results;
 * and the mean reciprocal rank of the first expected tool.
 */
function figuresOf (outcomes: readonly SearchOutcome[]): Record<string, number> {
  const mean = (values: number[]): number =>
    Math.round(1_000 * values.reduce((sum, value) => sum + value, 0) / values.length) / 1_000
  const recallAt = (count: number): number =>
    mean(outcomes.map(({ place }) => place !== null && place <= count ? 1 : 0))
  return {
    questions: outcomes.length,
    'recall@1': recallAt(1),
    'recall@5': recallAt(5),
    'recall@10': recallAt(10),
    MRR: mean(outcomes.map(({ place }) => place === null ? 0 : 1 / place))
  }
}

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { packageVersion } from '../../package.ts'
import { isObject, parseJsonObject } from '../../protocol/json.ts'
import { headerNames, latestModernVersion, metaKeys } from '../../protocol/modern/envelope.ts'
import type { ManagementApi } from '../api.ts'
import { withApi, type CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { parseJsonArgument } from './server-config.ts'

/** A question and the expected tools, named as `search_tools` names them; finding one of them is enough. */
interface Question { readonly question: string, readonly tools: readonly string[] }
/** A question with the tools that were found. `place`: position of the first expected tool, from 1; null if none. */
interface SearchOutcome extends Question { readonly place: number | null, readonly found: readonly string[] }

/** Number of results of each search. */
const limit = 10

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

/** Reads the questions of a file. @throws CommandError with the index of an element that is not a question */
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

/** The names of the tools that `$smart` finds, best first. @throws CommandError */
async function search (api: ManagementApi, route: string | undefined, query: string): Promise<string[]> {
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
  // The local credential of the command line is not accepted on MCP routes.
  const isForbidden = answer.status === 401 || answer.status === 403
  const hint = isForbidden ? '. Set TOOL_HUB_URL to a gateway, and TOOL_HUB_KEY to a key that can see its tools' : ''
  throw new CommandError(
    `The gateway answered ${answer.status}${typeof reason === 'string' ? `: ${reason}` : ''}${hint}`,
    isForbidden ? exitCodes.forbidden : exitCodes.failed
  )
}

/** Parses the JSON object in a response, or in the last event of a stream; without an object, returns `{}`. */
function messageOf (text: string): Record<string, unknown> {
  const data = text.split('\n').findLast((line) => line.startsWith('data:'))?.slice('data:'.length) ?? text
  return parseJsonObject(data) ?? {}
}

/** The shares of questions with an expected tool among the first 1, 5 and 10 results; and the mean reciprocal rank. */
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

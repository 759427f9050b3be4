import { ToolIndex, type SearchableTool } from '../plugins/extensions/smart-routing/words/index.ts'
import type { Bench, Measurement } from './gateway.ts'
import { measureCost } from './search/cost.ts'
import { plainBm25, measure, type Search } from './search/quality.ts'
import { rankedBy } from './search/ranked.ts'
import { modelName, searchesByModel } from './search/sentence-model.ts'
import { readOthers, readQuestions, readTools, type Question } from './search/questions.ts'
import { syntheticTools } from './search/synthetic.ts'
import { table } from './statistics.ts'

/**
 * Search by words, without configuration: whether the right tool of real servers is among the first results of a question, how many tokens
 * that saves, and what it costs with 10,000 tools. In this process: no gateway takes part.
 */
export const search: Measurement = { title: 'Search by words', run }

async function run ({ quick, log }: Bench): Promise<string> {
  const { servers, tools } = readTools()
  const questions = readQuestions()
  // Before the model is loaded: its heap makes garbage dearer, and no gateway has it.
  log('cost of 10,000 tools')
  const cost = await measureCost(syntheticTools(tools, 10_000), questions.map(({ text }) => text), quick ? 1 : 4)
  const index = new ToolIndex()
  await index.update(tools)
  const searches = byWords(index, tools)
  const others = readOthers()
  const indexOfOthers = new ToolIndex()
  await indexOfOthers.update(others.tools)
  log(`embedding tools and questions with ${modelName}`)
  const { byMeaning, fused } = await searchesByModel(index, tools, questions.map(({ text }) => text))
  return [
    `${tools.length} tools of ${servers} servers from npm packages, ${questions.length} questions (bench/search/). How those held back ` +
      'are found was not looked at, one by one; how those drawn are found was looked at later.',
    await quality([...searches, [modelName, byMeaning], [`Tool-Hub, fused with ${modelName}`, fused]], partsOf(questions)),
    `${others.tools.length} tools of ${others.servers} other servers, which neither the ranking nor the lexicons were tuned on:`,
    await quality(byWords(indexOfOthers, others.tools), [['held back, of other servers', others.questions]]),
    await tokens(tools, searches, questions),
    `10,000 tools (copies of these, with words of their own): built in ${cost.build.toFixed(0)} ms (${cost.buildCpu.toFixed(0)} ms of CPU), ` +
      `which held the loop for at most ${cost.hold.toFixed(0)} ms; a search takes ` +
      `${cost.p50.toFixed(1)} ms of CPU, ${cost.p99.toFixed(1)} at p99; ` +
      `one changed server of 100 tools ${cost.changed.toFixed(0)} ms of CPU; ${cost.heap.toFixed(0)} MB of memory.`
  ].join('\n\n')
}

function byWords (index: ToolIndex, tools: SearchableTool[]): Array<[string, Search]> {
  const plain = plainBm25(tools)
  const ranked = rankedBy(index, tools)
  return [
    ['plain BM25', (query) => plain(query, 20)],
    ['Tool-Hub without the static model', (query) => index.search(query, 20).map(({ tool }) => tool)],
    ['Tool-Hub', async (query) => await ranked(query, 20)]
  ]
}

function partsOf (questions: Question[]): Array<[string, Question[]]> {
  const isHeldBack = ({ set }: Question): boolean => set === 'another' || set === 'fresh'
  return [
    ['held back, by another author', questions.filter(({ set }) => set === 'another')],
    ['held back, fresh', questions.filter(({ set }) => set === 'fresh')],
    ['held back, English', questions.filter((each) => isHeldBack(each) && each.language === 'en')],
    ['held back, other languages', questions.filter((each) => isHeldBack(each) && each.language !== 'en')],
    ['drawn', questions.filter(({ set }) => set === 'drawn')],
    ['tuned on', questions.filter(({ set }) => set === 'tuned')]
  ]
}

async function quality (searches: Array<[string, Search]>, parts: Array<[string, Question[]]>): Promise<string> {
  const rows: string[][] = []
  for (const [half, asked] of parts) {
    for (const [name, search] of searches) {
      const { recall1, recall5, recall10, mrr, count } = await measure(asked, search)
      rows.push([`${half}: ${name}`, `${count}`, ...[recall1, recall5, recall10, mrr].map((figure) => figure.toFixed(3))])
    }
  }
  return table(['questions', 'number', 'recall@1', 'recall@5', 'recall@10', 'MRR'], rows)
}

/** Tokens (o200k) of the list of all tools, and of results as a client gets them, on average. */
async function tokens (tools: SearchableTool[], searches: Array<[string, Search]>, questions: Question[]): Promise<string> {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base')
  const known = new Map<SearchableTool, number>()
  const count = (tool: SearchableTool): number => {
    const { name, description, inputSchema } = tool
    const tokens = known.get(tool) ?? countTokens(JSON.stringify({ name, description, inputSchema }))
    known.set(tool, tokens)
    return tokens
  }
  const sum = (list: SearchableTool[]): number => list.reduce((total, tool) => total + count(tool), 0)
  const [, search] = searches.at(-1) ?? ['', () => []]
  const results: SearchableTool[][] = []
  for (const { text } of questions) results.push(await search(text))
  const mean = (most: number): string => {
    const total = results.reduce((before, found) => before + sum(found.slice(0, most)), 0)
    return (total / results.length).toFixed(0)
  }
  return table(['tokens (o200k)', ''], [
    [`the list of all ${tools.length} tools`, `${sum(tools)}`],
    ['ten results with whole descriptions and schemas', mean(10)],
    ['five results', mean(5)]
  ])
}

import { compressText } from '../plugins/extensions/compression/compress.ts'
import { detectStrategy } from '../plugins/extensions/compression/detect.ts'
import { loadTokenCounter, type CountTokens } from '../plugins/extensions/compression/tokens.ts'
import type { Bench, Measurement } from './gateway.ts'
import { readInputs, type Asked } from './compression/inputs.ts'
import { table } from './statistics.ts'

/**
 * Compression of results, with the settings that it has by default: what real outputs become, and whether what an agent may want to know
 * of them is still in there. In this process: no gateway takes part.
 */
export const compression: Measurement = { title: 'Compression of results', run }

const options = { strategy: 'auto', minTokens: 2_000, maxOutputTokens: 1_200 } as const

async function run ({ folder, log }: Bench): Promise<string> {
  const count = await loadTokenCounter()
  let [kept, keptByCutting, asked] = [0, 0, 0]
  const lost: string[] = []
  const rows = readInputs(folder).map((input) => {
    log(input.name)
    const began = performance.now()
    const compressed = compressText(input.text, options, count)
    const took = performance.now() - began
    if (!compressed) throw new Error(`${input.name} was not compressed`)
    if (detectStrategy(input.text) !== input.kind) log(`taken for ${detectStrategy(input.text)}, not ${input.kind}`)
    const found = input.asked.filter((each) => isIn(compressed.text, each))
    const foundByCutting = input.asked.filter((each) => isIn(headOf(input.text, compressed.tokensAfter, count), each))
    kept += found.length
    keptByCutting += foundByCutting.length
    asked += input.asked.length
    lost.push(...input.asked.filter((each) =>
      !found.includes(each)).map(({ question }) => `${input.name}: ${question}`))
    return [
      input.name, compressed.strategy, size(
        input.text
      ), size(compressed.text), figure(compressed.tokensBefore), figure(compressed.tokensAfter),
      `${found.length} of ${input.asked.length}`, `${foundByCutting.length} of ${input.asked.length}`, `${took.toFixed(
        0
      )} ms`
    ]
  })
  return [
    'Outputs of npm, git, grep and the compiler over the packages that are installed, taken while this runs (bench/compression/inputs.ts). ' +
      'An answer counts if its text is still there; the last column but one is the same number of tokens from the beginning. ' +
      'The original stays readable in any case.',
    table(['output', 'strategy', 'bytes', 'become', 'tokens (o200k)', 'become', 'answers', 'by cutting', 'time'], rows),
    `Of ${asked} answers ${kept} are still there, by cutting ${keptByCutting}. Left out: ${lost.join(' · ')}`
  ].join('\n\n')
}

const isIn = (text: string, { answer }: Asked): boolean =>
  typeof answer === 'string' ? text.includes(answer) : answer.test(text)
const size = (text: string): string => figure(Buffer.byteLength(text))
const figure = (value: number): string => value.toLocaleString('en-US')

/** The beginning of a text, of so many tokens. */
function headOf (text: string, tokens: number, count: CountTokens): string {
  let [low, high] = [0, Math.min(text.length, tokens * 16)]
  while (low < high) {
    const length = Math.ceil((low + high) / 2)
    if (count(text.slice(0, length), tokens) <= tokens) low = length
    else high = length - 1
  }
  return text.slice(0, low)
}

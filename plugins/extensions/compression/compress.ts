import { detect } from './detect.ts'
import { diff } from './strategies/diff.ts'
import { json } from './strategies/json.ts'
import { log } from './strategies/log.ts'
import { search } from './strategies/search.ts'
import { figure, type Renderings, type Strategy, type StrategyName, counted } from './strategies/strategy.ts'
import { isCutInRuns, type CountTokens } from './tokens.ts'
import { truncate } from '../../../protocol/text.ts'

const strategies: Readonly<Record<StrategyName, Strategy>> = { json, log, search, diff, text: cutText }

export interface CompressionOptions {
  strategy: StrategyName | 'auto'
  /** Texts of fewer tokens are not compressed. */
  minTokens: number
  /** Max tokens of the compressed text, including its first line. Below 40, the first line is shorter. */
  maxOutputTokens: number
}

/** A text of a tool's result, compressed; `before` and `after` in tokens. */
export interface Compressed { text: string, strategy: StrategyName, before: number, after: number }

/**
 * Compresses one text.
 * @returns undefined if the text is short, or would not become shorter
 */
export function compress (text: string, options: CompressionOptions, count: CountTokens): Compressed | undefined {
  const { strategy, minTokens, maxOutputTokens } = options
  // A token has at least one byte.
  if (Buffer.byteLength(text) < minTokens) return undefined
  const before = count(text)
  if (before < minTokens) return undefined
  const wanted = strategy === 'auto' ? detect(text) : strategy
  const heading = headingFor(maxOutputTokens, isCutInRuns(text) ? `about ${figure(before)}` : figure(before))
  // The numbers in the first line are not known yet; this uses the longest possible ones.
  const longest = (used: StrategyName): string => heading(used, figure(before))
  const room = maxOutputTokens - count(longest(wanted)) - 2
  let used = wanted
  let body = fit(strategies[wanted](text), room, count)
  if (body === undefined) {
    used = 'text'
    body = fit(cutText(text), room, count) ?? ''
  }
  const draft = titled(longest(used), body)
  if (count(draft) > maxOutputTokens) return tiny(text, maxOutputTokens, before, count)
  const compressed = withCount(draft, (after) => titled(heading(used, figure(after)), body), count)
  if (compressed.after >= before || compressed.text.length >= text.length) return undefined
  return { ...compressed, strategy: used, before }
}

/** Writes the token count of a text into the text itself, and repeats that until the count is right. */
function withCount (
  draft: string, saying: (tokens: number) => string, count: CountTokens
): { text: string, after: number } {
  let text = draft
  let after = count(text)
  for (let round = 0; round < 4; round++) {
    text = saying(after)
    const now = count(text)
    if (now === after) break
    after = now
  }
  return { text, after }
}

const titled = (heading: string, body: string): string => body === '' ? heading : `${heading}\n${body}`

/** Writes the first line. `after`: tokens of the compressed text. */
type Heading = (strategy: StrategyName, after: string) => string

/** @param max tokens of the whole text; a low number gets a shorter line */
function headingFor (max: number, before: string): Heading {
  if (max < 40) return (strategy, after) => `[compressed, ${strategy}: ${before} to ${after} tokens]`
  return (strategy, after) =>
    `[compressed, strategy ${strategy}: ${before} tokens became ${after}; the original is linked]`
}

/** The result if `max` leaves no room for the numbers. */
function tiny (text: string, max: number, before: number, count: CountTokens): Compressed | undefined {
  const short = ['[compressed]', '…'].find((each) => count(each) <= max)
  if (short === undefined || short.length >= text.length || count(short) >= before) return undefined
  return { text: short, strategy: 'text', before, after: count(short) }
}

/** Characters per token beyond which a text is not counted, since it has more tokens than allowed. */
const longestToken = 16

/** The longest rendering of at most `max` tokens; undefined if the shortest has more. */
export function fit (renderings: Renderings | undefined, max: number, count: CountTokens): string | undefined {
  if (renderings === undefined) return undefined
  const most = Math.max(0, max * longestToken)
  let fitting: string | undefined
  let low = 0
  let high = renderings.highest
  while (low <= high) {
    const level = Math.floor((low + high) / 2)
    const text = renderings.render(level, most)
    if (text !== undefined && text.length <= most && count(text, max) <= max) {
      fitting = text
      low = level + 1
    } else high = level - 1
  }
  return fitting
}

/** Keeps the first two thirds and the last third of the length, cut at line ends where one is near. */
function cutText (text: string): Renderings {
  return {
    highest: text.length,
    render: (level, most) => {
      if (level > most) return undefined
      const head = headOf(text, Math.ceil(level * 2 / 3))
      const tail = tailOf(text.slice(head.length), Math.floor(level / 3))
      const missing = text.length - head.length - tail.length
      return missing === 0 ? text : `${head}\n[… ${counted(missing, 'character')} left out …]\n${tail}`
    }
  }
}

/** The part of the length within which a line end is preferred. */
const near = 0.2

function headOf (text: string, length: number): string {
  const head = truncate(text, length)
  if (head.length === text.length) return head
  const lineEnd = head.lastIndexOf('\n')
  return lineEnd > length * (1 - near) ? head.slice(0, lineEnd) : head
}

function tailOf (text: string, length: number): string {
  if (length === 0) return ''
  let from = Math.max(0, text.length - length)
  // The text must not begin with the second half of a surrogate pair.
  const code = text.charCodeAt(from)
  if (from > 0 && code >= 0xdc00 && code <= 0xdfff) from++
  const lineEnd = text.indexOf('\n', from)
  return text.slice(from > 0 && lineEnd !== -1 && lineEnd - from < length * near ? lineEnd + 1 : from)
}

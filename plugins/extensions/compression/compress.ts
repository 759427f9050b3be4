import { detectStrategy } from './detect.ts'
import { diffStrategy } from './strategies/diff.ts'
import { jsonStrategy } from './strategies/json.ts'
import { logStrategy } from './strategies/log.ts'
import { searchStrategy } from './strategies/search.ts'
import {
  formatNumber, type Renderings, type Strategy, type StrategyName, formatQuantity
} from './strategies/strategy.ts'
import { mayOvercountTokens, type CountTokens } from './tokens.ts'
import { truncate } from '../../../protocol/text.ts'

const strategies: Readonly<Record<StrategyName, Strategy>> = {
  json: jsonStrategy, log: logStrategy, search: searchStrategy, diff: diffStrategy, text: cutText
}

export interface CompressionOptions {
  strategy: StrategyName | 'auto'
  /** Texts of fewer tokens are not compressed. */
  minTokens: number
  /** Max tokens of the compressed text, including its heading. Below 40, the heading is shorter. */
  maxOutputTokens: number
}

/** A compressed text block of a tool's result, the strategy used, and the numbers of tokens before and after. */
export interface CompressedText { text: string, strategy: StrategyName, tokensBefore: number, tokensAfter: number }

/**
 * Compresses a text. The result begins with a heading that says so.
 * @param count counts tokens
 * @returns undefined if the text is short or would not become shorter
 */
export function compressText (
  text: string, options: CompressionOptions, count: CountTokens
): CompressedText | undefined {
  const { strategy, minTokens, maxOutputTokens } = options
  // A token has at least one byte.
  if (Buffer.byteLength(text) < minTokens) return undefined
  const before = count(text)
  if (before < minTokens) return undefined
  const chosen = strategy === 'auto' ? detectStrategy(text) : strategy
  const total = formatNumber(before)
  const heading = headingFor(maxOutputTokens, mayOvercountTokens(text) ? `about ${total}` : total)
  // The token count of the compressed text is not known yet. It has at most as many digits as that of the original.
  const longestHeading = (used: StrategyName): string => heading(used, total)
  const room = maxOutputTokens - count(longestHeading(chosen)) - 2
  let used = chosen
  let body = fitRendering(strategies[chosen](text), room, count)
  if (body === undefined) {
    used = 'text'
    body = fitRendering(cutText(text), room, count) ?? ''
  }
  const draft = withHeading(longestHeading(used), body)
  if (count(draft) > maxOutputTokens) return shortestForm(text, maxOutputTokens, before, count)
  const compressed = withCount(draft, (after) => withHeading(heading(used, formatNumber(after)), body), count)
  if (compressed.tokensAfter >= before || compressed.text.length >= text.length) return undefined
  return { ...compressed, strategy: used, tokensBefore: before }
}

/**
 * Inserts the token count of a text into the text itself, which may change the count. Repeats this until the count is
 * correct, at most four times.
 * @param draft the text without a correct count
 * @param withTokens returns the text with a given count
 */
function withCount (
  draft: string, withTokens: (tokens: number) => string, count: CountTokens
): { text: string, tokensAfter: number } {
  let text = draft
  let after = count(text)
  for (let round = 0; round < 4; round++) {
    text = withTokens(after)
    const now = count(text)
    if (now === after) break
    after = now
  }
  return { text, tokensAfter: after }
}

const withHeading = (heading: string, body: string): string => body === '' ? heading : `${heading}\n${body}`

/** Returns the heading, the first line of a compressed text. @param after the token count of the text, formatted */
type Heading = (strategy: StrategyName, after: string) => string

/**
 * Returns the function that writes the heading.
 * @param max max tokens of the compressed text; below 40, the heading is shorter
 * @param before the token count of the original text, formatted
 */
function headingFor (max: number, before: string): Heading {
  if (max < 40) return (strategy, after) => `[compressed, ${strategy}: ${before} to ${after} tokens]`
  return (strategy, after) =>
    `[compressed, strategy ${strategy}: ${before} tokens became ${after}; the original is linked]`
}

/** Returns the shortest compressed text, for when `max` tokens leave no room for the heading and a body. */
function shortestForm (text: string, max: number, before: number, count: CountTokens): CompressedText | undefined {
  const shortest = ['[compressed]', '…'].find((each) => count(each) <= max)
  if (shortest === undefined || shortest.length >= text.length || count(shortest) >= before) return undefined
  return { text: shortest, strategy: 'text', tokensBefore: before, tokensAfter: count(shortest) }
}

/**
 * Max number of characters per token: a rendering longer than this times the max number of tokens is rejected without
 * counting its tokens.
 */
const maxCharactersPerToken = 16

/** Returns the longest rendering of at most `max` tokens, or undefined if even the shortest one has more. */
export function fitRendering (renderings: Renderings | undefined, max: number, count: CountTokens): string | undefined {
  if (renderings === undefined) return undefined
  const maxLength = Math.max(0, max * maxCharactersPerToken)
  let fitting: string | undefined
  let low = 0
  let high = renderings.highestLevel
  while (low <= high) {
    const level = Math.floor((low + high) / 2)
    const text = renderings.render(level, maxLength)
    if (text !== undefined && text.length <= maxLength && count(text, max) <= max) {
      fitting = text
      low = level + 1
    } else high = level - 1
  }
  return fitting
}

/**
 * The strategy `text`: keeps the beginning (two thirds of the allowed length) and the end (one third) of a text, cut at
 * line ends where possible. The level is the allowed length.
 */
function cutText (text: string): Renderings {
  return {
    highestLevel: text.length,
    render: (level, maxLength) => {
      if (level > maxLength) return undefined
      const head = headOf(text, Math.ceil(level * 2 / 3))
      const tail = tailOf(text.slice(head.length), Math.floor(level / 3))
      const missing = text.length - head.length - tail.length
      return missing === 0 ? text : `${head}\n[… ${formatQuantity(missing, 'character')} left out …]\n${tail}`
    }
  }
}

/** The share of the allowed length within which a line end is searched, next to the cut. */
const lineEndShare = 0.2

function headOf (text: string, length: number): string {
  const head = truncate(text, length)
  if (head.length === text.length) return head
  const lineEnd = head.lastIndexOf('\n')
  return lineEnd > length * (1 - lineEndShare) ? head.slice(0, lineEnd) : head
}

function tailOf (text: string, length: number): string {
  if (length === 0) return ''
  let from = Math.max(0, text.length - length)
  // The text must not begin with the second half of a surrogate pair.
  const code = text.charCodeAt(from)
  if (from > 0 && code >= 0xdc00 && code <= 0xdfff) from++
  const lineEnd = text.indexOf('\n', from)
  return text.slice(from > 0 && lineEnd !== -1 && lineEnd - from < length * lineEndShare ? lineEnd + 1 : from)
}

import { detect } from './detect.ts'
import { diff } from './strategies/diff.ts'
import { json } from './strategies/json.ts'
import { log } from './strategies/log.ts'
import { search } from './strategies/search.ts'
import { text as plain } from './strategies/text.ts'
import { figure, type Renderings, type Strategy, type StrategyName } from './strategies/strategy.ts'
import type { CountTokens } from './tokens.ts'

const strategies: Readonly<Record<StrategyName, Strategy>> = { json, log, search, diff, text: plain }

export interface CompressionOptions {
  strategy: StrategyName | 'auto'
  /** Texts of fewer tokens stay as they are. */
  minTokens: number
  /** Max tokens of the compressed text, its first line included. Fewer than 40 count as 40: the first line needs them. */
  maxOutputTokens: number
}

/** A text of a tool's result, compressed; `before` and `after` in tokens. */
export interface Compressed { text: string, strategy: StrategyName, before: number, after: number }

/**
 * Compresses one text.
 * @returns undefined where the text is short, or would not get shorter
 */
export function compress (text: string, options: CompressionOptions, count: CountTokens): Compressed | undefined {
  const { strategy, minTokens, maxOutputTokens } = options
  // A token has one character or more, or less than one only where a character takes several bytes.
  if (Buffer.byteLength(text) < minTokens) return undefined
  const before = count(text)
  if (before < minTokens) return undefined
  const max = Math.max(maxOutputTokens, 40)
  const wanted = strategy === 'auto' ? detect(text) : strategy
  // The first line's figures are known at the end; here they are as long as they can get.
  const room = max - count(firstLine(wanted, before, before)) - 2
  let used = wanted
  let body = fit(strategies[wanted](text), room, count)
  if (body === undefined) {
    used = 'text'
    body = fit(plain(text), room, count) ?? ''
  }
  const draft = `${firstLine(used, before, before)}\n${body}`
  const after = count(draft)
  const compressed = `${firstLine(used, before, after)}\n${body}`
  if (after >= before || compressed.length >= text.length) return undefined
  return { text: compressed, strategy: used, before, after: count(compressed) }
}

const firstLine = (strategy: StrategyName, before: number, after: number): string =>
  `[compressed, strategy ${strategy}: ${figure(before)} tokens became ${figure(after)}; the original is linked]`

/** A longer text is not counted: so many characters to a token is not a text that anybody writes. */
const longestToken = 16

/** The longest rendering of at most `max` tokens; undefined where even the shortest has more. */
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

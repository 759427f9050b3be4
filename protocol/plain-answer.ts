import type { Response } from './message.ts'

/** Matches the text before a result that is the last member of its answer. */
const before = /^\{"jsonrpc": ?"2\.0", ?"id": ?(0|[1-9]\d{0,14}), ?"result": ?(?=\{)/
/** The beginning of an answer whose first member is the result. */
const begin = '{"result":{'
/** Matches the text after a result that is the first member of its answer. */
const behind = /\},"jsonrpc":"2\.0","id":(0|[1-9]\d{0,14})\}$/
/** Max characters that `behind` matches. */
const maxBehind = 48

/**
 * Parses an answer whose only members are `jsonrpc`, `id` and an object as `result`, in the two orders that most
 * programs write: the result last or first. The text without the other two members is the result if it is valid JSON.
 * @returns undefined for any other text
 */
export function parseSimpleResponse (text: string): Response | undefined {
  const head = before.exec(text)
  if (head) return text.endsWith('}}') ? answerOf(text, Number(head[1]), head[0].length, text.length - 1) : undefined
  if (!text.startsWith(begin)) return undefined
  const tail = behind.exec(text.slice(-maxBehind))
  if (!tail) return undefined
  return answerOf(text, Number(tail[1]), begin.length - 1, text.length - tail[0].length + 1)
}

function answerOf (text: string, id: number, start: number, end: number): Response | undefined {
  const resultText = text.slice(start, end)
  try {
    return { kind: 'response', id, resultText, value: JSON.parse(resultText) as unknown }
  } catch {
    return undefined
  }
}

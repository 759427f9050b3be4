import { isObject, type Document } from '../apply.ts'

/**
 * The settings document that bytes hold.
 * @throws Error with one clear sentence, naming the path; never with a piece of what is in the file, which may be a secret
 */
export function parse (bytes: Buffer, path: string): Document {
  const refuse = (why: string): Error =>
    new Error(`The settings file ${path} ${why}. It was left as it is: mend it, or move it away to start with an empty one.`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refuse('is not UTF-8 text')
  }
  if (text.trim() === '') throw refuse('is empty')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw refuse(`is not valid JSON (${error instanceof Error ? where(error.message, text) : ''})`)
  }
  if (!isObject(value)) throw refuse('does not hold a JSON object')
  return value
}

/** The parser's message without its excerpt, and with a line where it tells a position. */
function where (message: string, text: string): string {
  const plain = message.replace(/, (\.\.\.)?".*$/s, '').replace(/ in JSON at position ([0-9]+).*$/s, (_, position: string) => {
    const before = text.slice(0, Number(position)).split('\n')
    return `, line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
  })
  return plain.replace(/\s+/g, ' ').slice(0, 120)
}

/** A text of at least this length, in characters, is not joined with the text around it, since joining copies it. */
const minSeparate = 8 * 1024

/**
 * Returns the parts of the text of a JSON-RPC answer. Buffers and long texts are not copied.
 * @param begin the text up to the value of `result` or `error`, which is the last member
 * @param result the value of `result` or `error`
 */
export const answerParts = (begin: string, result: string | Buffer): Array<string | Buffer> =>
  typeof result === 'string' && result.length < minSeparate ? [`${begin}${result}}`] : [begin, result, '}']

/** Results of at least this size, in characters or bytes, are not joined with the text around them: joining copies. */
const minSeparate = 8 * 1024

/** The parts of an answer's text. @param begin the text before the value of `result` or `error`, the last member */
export const answerParts = (begin: string, result: string | Buffer): Array<string | Buffer> =>
  typeof result === 'string' && result.length < minSeparate ? [`${begin}${result}}`] : [begin, result, '}']

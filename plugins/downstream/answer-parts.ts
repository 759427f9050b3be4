/** Results of at least this many characters are not joined with the text around them, since joining copies them. */
const minSeparate = 8 * 1024

/** The parts of an answer's text. @param begin the text before the result or error */
export const answerParts = (begin: string, result: string | Buffer): Array<string | Buffer> =>
  typeof result === 'string' && result.length < minSeparate ? [`${begin}${result}}`] : [begin, result, '}']

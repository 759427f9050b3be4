/** Characters from which a result is not joined with what stands around it: joining copies it, more than once. */
const minSeparate = 8 * 1024

/** The parts of an answer's text. @param begin the text before the result, or before the error */
export const answerParts = (begin: string, result: string | Buffer): Array<string | Buffer> =>
  typeof result === 'string' && result.length < minSeparate ? [`${begin}${result}}`] : [begin, result, '}']

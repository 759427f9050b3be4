/** Several texts as one, with the end of each. */
export interface JoinedTexts { readonly text: string, readonly ends: readonly number[] }

/** Texts as one, to be sent to another thread: there it is one large object, which the garbage collector does not copy, as small ones. */
export function joined (texts: readonly string[]): JoinedTexts {
  const ends: number[] = []
  for (const { length } of texts) ends.push((ends.at(-1) ?? 0) + length)
  return { text: texts.join(''), ends }
}

/** The texts, as parts of the one that was sent. */
export const textsOf = ({ text, ends }: JoinedTexts): string[] => ends.map((end, at) => text.slice(ends[at - 1] ?? 0, end))

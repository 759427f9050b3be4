/** Ordinary words that clauses of the API begin with. Other first words may be names, which stay as they are. */
const firstWords = new Set(
  ('a an any at cannot choose each entry every expected group has have in is it its key must neither no none not ' +
  'nothing of one only other required some that the there these this those to unknown what which with').split(' ')
)

/** A clause with a capital letter, as a sentence begins, unless its first word may be a name. */
export const withCapital = (text = ''): string =>
  text.replace(/^[a-z]+(?= )/, (word) =>
    firstWords.has(word) ? word.charAt(0).toUpperCase() + word.slice(1) : word)

/** The words with which messages of the API begin. Other first words may be names, which must not be capitalized. */
const firstWords = new Set(
  ('a an any at cannot choose each entry every expected group has have in is it its key must neither no none not ' +
  'nothing of one only other paste required some that the there these this those to unknown users values ' +
  'what which with').split(' ')
)

/** Capitalizes the first word of a message, unless the word may be a name. */
export const capitalizeMessage = (text = ''): string =>
  text.replace(/^[a-z]+(?= )/, (word) =>
    firstWords.has(word) ? word.charAt(0).toUpperCase() + word.slice(1) : word)

// Normalises phrases for comparison: "who opened the ticket", "who opened this ticket" and "who has opened our ticket"
// are equal.

const list = (words: string): string[] => words.split(' ')

const leftOut: ReadonlySet<string> = new Set(list(
  'a an the this that these those my our your his her its their me us him them it some any s t re ve ll d ' +
  'is are was were am be been being do does did'
))
const alike: ReadonlyMap<string, string> = new Map([
  ...list('i we you he she they').map((word): [string, string] => [word, 'i']),
  ...list('have has had').map((word): [string, string] => [word, 'have']),
  ...list('don isn aren doesn didn won wasn weren couldn wouldn shouldn haven ' +
    'hasn hadn').map((word): [string, string] => [word, 'not'])
])

/**
 * The normalised form of a word in a phrase: a representative of words with the same role, else the stem; undefined for
 * words that are ignored.
 */
export const carrying = (word: string, stem: string): string | undefined =>
  leftOut.has(word) ? undefined : alike.get(word) ?? stem

/**
 * Particles that can be separated from their verb: `turn the lights off`; in German and Dutch at the end: `füge einen
 * Kommentar hinzu`.
 */
const particles: ReadonlySet<string> = new Set(list('off up down out away back on over together apart through'))
const foreignParticles: ReadonlySet<string> = new Set(list(
  'an auf aus ab ein hoch herunter runter hinzu um zu zuruck neu fertig vor nach mit los weg weiter wieder zusammen ' +
  'durch fest frei bei rein raus op af uit aan toe terug over door mee samen bij in'
))
/** Words that may follow a separated particle. Before any other word it is a preposition: `put milk on my list`. */
const following: ReadonlySet<string> = new Set(list(
  'in on at from for to by and or but so when if with until till as before after while then again und en oder of wenn'
))
/** Max words between a verb and its particle. */
const mostBetween = 6

/**
 * The indexes of particles that may belong to a verb, in English and in other languages. @param at index of the verb
 */
export function particlesOf (words: readonly string[], at: number): { english?: number, foreign?: number } {
  const found: { english?: number, foreign?: number } = {}
  for (let i = at + 2; i < Math.min(words.length, at + 2 + mostBetween); i++) {
    const [word = '', next] = words.slice(i, i + 2)
    if (next !== undefined && !following.has(next)) continue
    if (particles.has(word)) found.english ??= i
    if (foreignParticles.has(word)) found.foreign ??= i
  }
  return found
}

/** The indexes of consecutive words; ignored words may stand between them. Undefined: they do not occur at `from`. */
export function placesOf (
  sought: readonly string[], words: ReadonlyArray<string | undefined>, from: number
): number[] | undefined {
  const places: number[] = []
  for (let at = from; at < words.length && places.length < sought.length; at++) {
    if (words[at] === sought[places.length]) places.push(at)
    else if (words[at] !== undefined) return undefined
  }
  return places.length === sought.length ? places : undefined
}

/** Why something of a catalogue cannot become a config: a clause for the person who wanted to add it. */
export class Unusable extends Error {
  override readonly name = 'Unusable'
}

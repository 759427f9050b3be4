/** Arguments that make no request; the sentence is for who called the tool. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError'
}

/** A description that cannot be served, or a part of one; the sentence says what is wrong, and where. */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
}

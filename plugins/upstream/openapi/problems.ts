/** Arguments that no request can be made of. The message is for the caller of the tool. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError'
}

/** An OpenAPI description, or a part of one, that cannot be used. The message states the reason and the place. */
export class DescriptionError extends Error {
  override readonly name = 'DescriptionError'
}

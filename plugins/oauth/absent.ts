/**
 * A document of OAuth (metadata, a registration, an answer of a token endpoint) without members that are `null` or `""`: many programs
 * write them for what they have not.
 */
export const withoutAbsent = (document: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null && value !== ''))

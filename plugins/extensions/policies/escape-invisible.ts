/** Format and control characters, line separators, and invisible characters, except line feeds, tabs and U+FE0F. */
const unseen = /(?!\n|\t|\u{FE0F})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Makes a text safe for a person who decides by reading it: characters that are invisible or change the text direction
 * (Unicode, UAX #9) are written as escapes, such as `\u{202e}`.
 */
export const escapeInvisible = (text: string): string =>
  text.replace(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)

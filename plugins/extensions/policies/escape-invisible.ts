/** Matches control and format characters, line separators and invisible characters, except `\n`, `\t` and U+FE0F. */
const unseen = /(?!\n|\t|\u{FE0F})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Makes a text safe to read before a decision: replaces characters that are invisible or change the text direction
 * (Unicode, UAX #9) by escapes such as `\u{202e}`.
 */
export const escapeInvisible = (text: string): string =>
  text.replace(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)

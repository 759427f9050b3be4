/** Format and control characters, line separators, and what is drawn as nothing; not line feeds, tabs and U+FE0F. */
const unseen = /(?!\n|\t|\u{FE0F})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * A text for a person who decides by what he reads: characters that are not visible or change the direction of text
 * (Unicode, UAX #9) are written as escapes, such as `\u{202e}`.
 */
export const visible = (text: string): string =>
  text.replace(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)

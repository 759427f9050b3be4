const unprintable = /[\p{Cc}\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu

/**
 * Makes untrusted text safe for a terminal, on one line: control characters, invisible tags, and characters that change
 * the direction of text become `�`, line breaks and tabs become spaces.
 */
export const toPrintable = (text: string): string => text.replace(/[\t\n\r]+/g, ' ').replace(unprintable, '�')

/**
 * Makes an untrusted text of several lines safe for a terminal: what can steer the terminal or reorder the text becomes
 * `�`. Marks that texts of some languages need stay.
 */
export const toPrintableText = (text: string): string =>
  text.replace(/(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '�')

/** Applies `toPrintable` to each line of a text, and indents all lines but the first by two spaces. */
export const toIndentedPrintableLines = (text: string): string => text.split('\n').map(toPrintable).join('\n  ')

/**
 * Serializes a value for stdout or stderr. What JSON leaves as it is although it can steer a terminal (C1 control
 * characters), reorder text, or hide text (tags), is escaped; the value stays the same.
 * @param indent the number of spaces per level; undefined for one line
 */
export const toJsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(/[\u007f-\u009f\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu, (found) =>
    found.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''))

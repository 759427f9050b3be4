import { limits } from '../limits/index.ts'

/**
 * Characters that change how others are read, or that nobody sees: controls, bidi overrides, zero-width ones, unassigned and private code
 * points, lone surrogates, and the blank of braille.
 */
const invisible = /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu
/** Selectors between the forms of an emoji, which are harmless and common. */
const emojiForms = /[\ufe0e\ufe0f]/g
/** Piles of combining marks, which would cover the lines above and below. Living scripts need four at most. */
const marks = /(\p{M}{4})\p{M}+/gu
/** Double quotes of all kinds, with which a name in quotes could pretend to have ended. */
const quotes = /["\u00ab\u00bb\u201c-\u201f\u2033\u2036\u2039\u203a\u275d\u275e\u300c-\u300f\u301d-\u301f\uff02]/g
const visible = /[\p{L}\p{N}\p{P}\p{S}]/u

/**
 * A stranger's text as one line that shows what is in it: characters that nobody sees become U+FFFD, and what is too long ends in "…". It
 * is not escaped: templates do that.
 * @param max in code points
 */
export function visibleText (text: string, max: number = limits.pageTexts.name): string {
  // A prefix that surely holds `max` characters; the length of the rest does not matter.
  const clean = text
    .slice(0, max * 8)
    .normalize('NFC')
    .replace(emojiForms, '')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(invisible, '\ufffd')
    .replace(marks, '$1')
  const points = [...clean]
  return points.length > max || text.length > max * 8 ? `${points.slice(0, max - 1).join('')}…` : clean
}

/** A name for a place between quotes. */
export function shownName (name: string): string {
  const text = visibleText(name).replace(quotes, "'")
  return visible.test(text.replaceAll('\ufffd', '')) ? text : '(no name)'
}

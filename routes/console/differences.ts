import { escapeInvisible } from '../../plugins/extensions/index.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/**
 * A member that differs between two versions of a record, with its values as text. `before` or `after` is missing if
 * that version does not have the member.
 */
export interface Difference { readonly path: string, readonly before?: string, readonly after?: string }

/** Returns the members that differ between two versions of a record. A version that is null has no members. */
export function differencesOf (before: unknown, after: unknown): Difference[] {
  const [old, now] = [before, after].map((value) => (value ?? {}) as Record<string, unknown>)
  const names = [...new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])]
  return names.flatMap((path) => {
    const [was, is] = [toShownText(old?.[path]), toShownText(now?.[path])]
    return was === is ? [] : [{ path, ...was !== undefined && { before: was }, ...is !== undefined && { after: is } }]
  })
}

/**
 * Like `differencesOf`, but compares members that are objects in both versions member by member. Their paths are, for
 * example, `routing.skipAuth`.
 * @param above a prefix for the paths, such as `routing.`
 */
export const deepDifferencesOf = (before: unknown, after: unknown, above = ''): Difference[] =>
  differencesOf(before, after).flatMap((difference) => {
    const path = `${above}${difference.path}`
    const [old, now] = [before, after].map((value) => (value as Record<string, unknown> | null)?.[difference.path])
    const isInside = isPlainObject(old) && isPlainObject(now)
    return isInside ? deepDifferencesOf(old, now, `${path}.`) : [{ ...difference, path }]
  })

const toShownText = (value: unknown): string | undefined =>
  value === undefined ? undefined : typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)

/**
 * A text in three parts: the start that it shares with another text, the part that differs, and the end that it shares.
 * Invisible characters are escaped.
 */
type MarkedText = readonly [start: string, changed: string, end: string]

/** Splits each of two texts into the start that both share, the part that differs, and the end that both share. */
export function splitAtDifference (before: string, after: string): { before: MarkedText, after: MarkedText } {
  const [old, now] = [[...before], [...after]]
  const shorter = Math.min(old.length, now.length)
  let start = 0
  while (start < shorter && old[start] === now[start]) start++
  let end = 0
  while (end < shorter - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const shown = (part: readonly string[]): string => escapeInvisible(part.join(''))
  const parts = (all: readonly string[]): MarkedText =>
    [shown(all.slice(0, start)), shown(all.slice(start, all.length - end)), shown(all.slice(all.length - end))]
  return { before: parts(old), after: parts(now) }
}

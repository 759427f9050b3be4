import { escapeInvisible } from '../../plugins/extensions/index.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** A member that differs, with both values as text. */
export interface Difference { readonly path: string, readonly before?: string, readonly after?: string }

/** Returns the members that differ between two versions of a record, with their values as text. */
export function differencesOf (before: unknown, after: unknown): Difference[] {
  const [old, now] = [before, after].map((value) => (value ?? {}) as Record<string, unknown>)
  const names = [...new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])]
  return names.flatMap((path) => {
    const [was, is] = [toShownText(old?.[path]), toShownText(now?.[path])]
    return was === is ? [] : [{ path, ...was !== undefined && { before: was }, ...is !== undefined && { after: is } }]
  })
}

/**
 * Like `differencesOf`, but where both versions of a member are objects, returns the differing members within them,
 * with paths such as `routing.skipAuth`.
 * @param above the path of the record, ending with a dot
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

/** A text with escaped invisible characters, in three parts: the common start, the difference, the common end. */
type MarkedText = readonly [start: string, changed: string, end: string]

/** Marks the difference between two texts. */
export function markDifference (before: string, after: string): { before: MarkedText, after: MarkedText } {
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

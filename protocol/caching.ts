import { isObject, smallMemberOf } from './json.ts'
import { listKinds, type ListKind } from './lists.ts'

// How long a result may be kept, and for whom (MCP 2026-07-28, "Caching").

/** How long a result may be kept, and by whom, as its server says. */
export interface Caching {
  /** For how long it is fresh, in ms. 0: it may be read again whenever it is needed. */
  readonly ttlMs: number
  /** It is the same for everybody; false: for one authorization context only. */
  readonly isPublic: boolean
}

/** @param result JSON text @returns undefined: the server says nothing of it, as those of earlier revisions do */
export function cachingOf (result: string): Caching | undefined {
  if (!result.includes('"ttlMs"') && !result.includes('"cacheScope"')) return undefined
  const ttlMs = smallMemberOf(result, 'ttlMs')
  const scope = smallMemberOf(result, 'cacheScope')
  if (ttlMs === undefined && scope === undefined) return undefined
  return {
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 &&
    Number.isFinite(ttlMs)
      ? Math.trunc(ttlMs)
      : 0,
    isPublic: scope === 'public'
  }
}

/** How what was made of two results may be kept. */
export const strictestCaching = (a: Caching | undefined, b: Caching | undefined): Caching | undefined =>
  a && b && { ttlMs: Math.min(a.ttlMs, b.ttlMs), isPublic: a.isPublic && b.isPublic }

/** The caching of a server's lists, and when it was told. */
export interface Freshness {
  /** In ms since the epoch. */
  at: number
  readonly lists: Readonly<Partial<Record<ListKind, Caching>>>
}

interface FreshnessBounds {
  /** Min time between two readings because of their age, in ms. */
  readonly least: number
  /** Max time for which any list counts as fresh, in ms. */
  readonly most: number
}

/**
 * When the first of the lists has run out, in ms since the epoch. A list with a time of 0 runs out at once, unless the
 * server tells of its changes; one of which the server says nothing never does.
 */
export function staleAt (
  { at, lists }: Freshness,
  capabilities: Readonly<Record<string, unknown>>,
  { least, most }: FreshnessBounds
): number {
  let first = Infinity
  for (const [kind, { ttlMs }] of Object.entries(lists) as Array<[ListKind, Caching]>) {
    const own = capabilities[listKinds[kind].capability]
    if (ttlMs === 0 && isObject(own) && own.listChanged === true) continue
    first = Math.min(first, at + Math.min(Math.max(ttlMs, least), most))
  }
  return first
}

/** How many parts of its time are told apart: a list is written anew for each, and may have megabytes. */
const parts = 10

/** How long a list is still fresh, in ms: what is left of its time, rounded down. @param now in ms since the epoch */
export function leftOf (ttlMs: number, at: number, now: number, { most }: FreshnessBounds): number {
  const whole = Math.min(ttlMs, most)
  const step = Math.max(1_000, Math.trunc(whole / parts))
  const left = at + whole - now
  return left >= whole ? whole : Math.max(0, Math.trunc(left / step) * step)
}

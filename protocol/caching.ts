import { parseSmallMember } from './json.ts'
import { listCapabilityOf, type ListKind } from './lists.ts'

/** How long a result may be cached, and for whom (MCP 2026-07-28, "Caching"). */
export interface Caching {
  /** How long the result is fresh, in ms; 0 if it is stale at once. */
  readonly ttlMs: number
  /** Whether the result is the same for everybody; false: it depends on the authorization. */
  readonly isPublic: boolean
}

/**
 * Reads the caching hints of a result.
 * @param result JSON text
 * @returns undefined when the result has none, as before 2026-07-28
 */
export function cachingOf (result: string): Caching | undefined {
  if (!result.includes('"ttlMs"') && !result.includes('"cacheScope"')) return undefined
  const ttlMs = parseSmallMember(result, 'ttlMs')
  const scope = parseSmallMember(result, 'cacheScope')
  if (ttlMs === undefined && scope === undefined) return undefined
  return {
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 && Number.isFinite(ttlMs)
      ? Math.trunc(ttlMs)
      : 0,
    isPublic: scope === 'public'
  }
}

/** Combines the caching hints of two results that are merged into one; undefined unless both have hints. */
export const combineCaching = (a: Caching | undefined, b: Caching | undefined): Caching | undefined =>
  a && b && { ttlMs: Math.min(a.ttlMs, b.ttlMs), isPublic: a.isPublic && b.isPublic }

/** The caching hints of a server's lists, and the time at which the lists were read. */
export interface Freshness {
  /** The time at which the lists were read, in ms since the epoch. */
  learnedAt: number
  readonly lists: Readonly<Partial<Record<ListKind, Caching>>>
}

interface FreshnessBounds {
  /** Min time between two reads of a stale list, in ms. */
  readonly least: number
  /** Max time that a list is considered fresh, in ms. */
  readonly most: number
}

/**
 * Returns when the first of a server's lists becomes stale, in ms since the epoch; Infinity: never. TTLs are limited to
 * the bounds. A list never becomes stale if it has no TTL, or if it has a TTL of 0 and the server announces its
 * changes.
 */
export function staleAt (
  { learnedAt, lists }: Freshness,
  capabilities: Readonly<Record<string, unknown>>,
  { least, most }: FreshnessBounds
): number {
  let first = Infinity
  for (const [kind, { ttlMs }] of Object.entries(lists) as Array<[ListKind, Caching]>) {
    if (ttlMs === 0 && listCapabilityOf(capabilities, kind)?.listChanged === true) continue
    first = Math.min(first, learnedAt + Math.min(Math.max(ttlMs, least), most))
  }
  return first
}

/**
 * A remaining TTL is rounded down to tenths of the whole TTL (at least to seconds), since a list is serialized again
 * for each distinct TTL.
 */
const ttlSteps = 10

/**
 * Returns how long a list remains fresh, in ms, rounded down.
 * @param at the time at which the list was read, in ms since the epoch
 * @param now the current time, in ms since the epoch
 */
export function remainingFreshness (ttlMs: number, at: number, now: number, { most }: FreshnessBounds): number {
  const whole = Math.min(ttlMs, most)
  const step = Math.max(1_000, Math.trunc(whole / ttlSteps))
  const left = at + whole - now
  return left >= whole ? whole : Math.max(0, Math.trunc(left / step) * step)
}

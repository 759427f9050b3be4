/** The revisions of the legacy era, newest first. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const
export type LegacyVersion = typeof legacyVersions[number]

export const latestLegacyVersion: LegacyVersion = legacyVersions[0]

export const isLegacyVersion = (value: unknown): value is LegacyVersion =>
  legacyVersions.some((version) => version === value)

/**
 * Returns the revision to answer `initialize` with: the requested one if supported, otherwise the newest ("Version
 * Negotiation").
 */
export const negotiateVersion = (asked: unknown): LegacyVersion => isLegacyVersion(asked) ? asked : latestLegacyVersion

/**
 * Returns the revisions to offer to a server that has refused one: those of `left` that its error names, otherwise all
 * of `left`; none if the error is about something else.
 * @param left the revisions that have not been offered, newest first
 */
export function alternativeVersions (errorText: string, left: readonly LegacyVersion[]): readonly LegacyVersion[] {
  if (!/protocol.?version/i.test(errorText)) return []
  const named = left.filter((version) => errorText.includes(version))
  return named.length > 0 ? named : left
}

/** Whether a revision supports JSON-RPC batches: those up to 2025-03-26. */
export const allowsBatch = (version: LegacyVersion): boolean => version <= '2025-03-26'

/** Whether streams have priming events and may be closed to make the client poll (SEP-1699): since 2025-11-25. */
export const allowsPolling = (version: LegacyVersion): boolean => version >= '2025-11-25'

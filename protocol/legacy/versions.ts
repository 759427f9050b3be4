/** The revisions of the legacy era, newest first. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const
export type LegacyVersion = typeof legacyVersions[number]

export const latestLegacy: LegacyVersion = legacyVersions[0]

export const isLegacyVersion = (value: unknown): value is LegacyVersion =>
  legacyVersions.some((version) => version === value)

/**
 * The version to answer `initialize` with: the requested one if it is supported, else the newest (Lifecycle, "Version
 * Negotiation").
 */
export const negotiate = (asked: unknown): LegacyVersion => isLegacyVersion(asked) ? asked : latestLegacy

/** JSON-RPC batches exist in revisions up to 2025-03-26. */
export const allowsBatch = (version: LegacyVersion): boolean => version <= '2025-03-26'

/** Since 2025-11-25, streams have priming events, and may be closed for the client to poll (SEP-1699). */
export const allowsPolling = (version: LegacyVersion): boolean => version >= '2025-11-25'

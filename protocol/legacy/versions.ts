/** The revisions of the legacy era, newest first. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const
export type LegacyVersion = typeof legacyVersions[number]

export const latestLegacy: LegacyVersion = legacyVersions[0]

export const isLegacyVersion = (value: unknown): value is LegacyVersion => legacyVersions.some((version) => version === value)

/** The version to answer an `initialize` with: the one asked for if we speak it, else our newest (MCP lifecycle, "Version Negotiation"). */
export const negotiate = (asked: unknown): LegacyVersion => isLegacyVersion(asked) ? asked : latestLegacy

/** JSON-RPC batches exist in 2025-03-26 and before. */
export const allowsBatch = (version: LegacyVersion): boolean => version <= '2025-03-26'

/** Streams have priming events, and may be closed to be polled, since 2025-11-25 (SEP-1699). */
export const allowsPolling = (version: LegacyVersion): boolean => version >= '2025-11-25'

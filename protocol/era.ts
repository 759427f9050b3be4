import { legacyVersions } from './legacy/versions.ts'
import { isModernVersion, modernVersions } from './modern/envelope.ts'

/** The eras of MCP. `legacy` (up to 2025-11-25) starts with `initialize`; in `modern`, requests are self-contained. */
export type Era = 'legacy' | 'modern'

/** All revisions that the gateway supports, newest first. */
export const supportedVersions: readonly string[] = [...modernVersions, ...legacyVersions]

/** Returns the era of an MCP revision. */
export const eraOf = (version: string): Era => isModernVersion(version) ? 'modern' : 'legacy'

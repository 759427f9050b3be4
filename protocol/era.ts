import { legacyVersions } from './legacy/versions.ts'
import { isModernVersion, modernVersions } from './modern/envelope.ts'

/** The eras of MCP. `legacy`, to 2025-11-25, begins with `initialize`; in `modern` each request stands alone. */
export type Era = 'legacy' | 'modern'

/** All revisions that the gateway supports, newest first. */
export const supportedVersions: readonly string[] = [...modernVersions, ...legacyVersions]

/** @param version an MCP revision */
export const eraOf = (version: string): Era => isModernVersion(version) ? 'modern' : 'legacy'

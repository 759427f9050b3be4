import fp from 'fastify-plugin'
import type { ManagementOptions } from './parts.ts'

export { managementLimits } from './limits.ts'
export { type ArchiveBounds, ArchiveError, ArchivePathChecker } from './bundles/archive/archive.ts'
export { unpackBackupArchive } from './bundles/bundles.ts'
export { bundleNameProblem } from './bundles/manifest.ts'
export { currentVersionLink } from './bundles/launch.ts'
export { newServerNameProblem } from './checks.ts'
export { type ApiAnswer, ApiError } from './console/api-client.ts'
export type { Notice } from './console/cookies.ts'
export { type SubmittedForm, valuesToShowAgain } from './console/form-body.ts'
export { isAutoRefresh, type LoadLivePageData } from './console/live.ts'
export type { ViewerIdentity, ProgressOptions, McpAnswer, Progress } from './console/mcp-client.ts'
export type { PageData } from './console/render.ts'
export { exactDraftOf, formatJson } from './console/forms/exact-draft.ts'
export { namesHint, namesIn } from './console/forms/names.ts'
export { capitalizeMessage } from './console/sentences.ts'
export { parseIfJson } from '../../protocol/json.ts'
export { npmPackageOf } from './market/market.ts'
export { parseServerEntries } from './servers/add-many.ts'
export { serializeApiResponse } from './servers/record-json.ts'
export { uniqueName } from './unique-name.ts'
export type { ManagementOptions } from './parts.ts'

/** Registers the services that manage settings: servers, groups, system configuration, templates, bundles, console. */
export default fp<ManagementOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'management', dependencies: ['upstream-wing'] })

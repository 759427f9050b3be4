import type { Snapshot } from '../../../db/store.ts'

/** The header that carries bearer keys on MCP routes (`routing.bearerAuthHeaderName`), in lower case. */
export const bearerKeyHeaderName = ({ system }: Snapshot): string =>
  (system.routing?.bearerAuthHeaderName ?? 'Authorization').toLowerCase()

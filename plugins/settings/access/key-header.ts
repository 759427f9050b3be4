import type { Snapshot } from '../../../db/store.ts'

/** Returns the name of the header with bearer keys on MCP routes (`routing.bearerAuthHeaderName`), in lower case. */
export const bearerKeyHeaderName = ({ system }: Snapshot): string =>
  (system.routing?.bearerAuthHeaderName ?? 'Authorization').toLowerCase()

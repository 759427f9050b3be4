import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import type { Sealer } from '../base/secrets/index.ts'
import openapi from './openapi/index.ts'
import mcp from './downstream.ts'
import sse from './sse.ts'
import tools from './tools/index.ts'

export interface DownstreamOptions {
  storage: Pick<Storage, 'usedStates'>
  /** Seals `requestState` for all replicas; undefined if only the process that sealed it needs to open it. */
  sealer?: Sealer
}

/** Registers the plugins for MCP over both HTTP transports, for plain HTTP, and for OpenAPI documents. */
export default fp<DownstreamOptions>(async (app, { sealer, storage }) => {
  await app.register(mcp, { sealer, usedStates: storage.usedStates })
  await app.register(sse)
  await app.register(tools)
  await app.register(openapi)
}, { name: 'downstream-parts' })

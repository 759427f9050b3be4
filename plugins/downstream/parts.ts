import fp from 'fastify-plugin'
import type { Storage } from '../../db/store.ts'
import type { Sealer } from './modern/state.ts'
import openapi from './openapi/index.ts'
import mcp from './plugin.ts'
import sse from './sse/index.ts'
import tools from './tools/index.ts'

export interface DownstreamOptions {
  storage: Pick<Storage, 'usedStates'>
  /** Seals what modern clients keep for servers; undefined: what one process has sealed, no other one opens. */
  sealer?: Sealer
}

/** The ways of asking: MCP over both HTTP transports, plain HTTP, and the documents that describe it. */
export default fp<DownstreamOptions>(async (app, { sealer, storage }) => {
  await app.register(mcp, { sealer, usedStates: storage.usedStates })
  await app.register(sse)
  await app.register(tools)
  await app.register(openapi)
}, { name: 'downstream-parts' })

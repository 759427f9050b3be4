import type { FastifyPluginAsync } from 'fastify'
import { addItemPages } from './item.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** Page: one tool, its override and a test call. */
const routes: FastifyPluginAsync = async (app) => {
  addItemPages(app, {
    kind: 'tools',
    schemaOf: ({ inputSchema }) => inputSchema,
    factsOf: ({ annotations }) => {
      const stated = isPlainObject(annotations) ? annotations : {}
      const hints = Object.entries(hintsOf).flatMap(([hint, [yes, no]]) =>
        typeof stated[hint] === 'boolean' ? [stated[hint] ? yes : no] : [])
      return hints.length > 0 ? [['It says', hints.join(', ')]] : []
    },
    method: 'tools/call',
    paramsOf: (name, args) => `{"name":${JSON.stringify(name)},"arguments":${args}}`
  })
}
export default routes

/** Texts for a tool's annotations, if true and if false. */
const hintsOf: Readonly<Record<string, readonly [string, string]>> = {
  readOnlyHint: ['it only reads', 'it changes things'],
  destructiveHint: ['it may destroy', 'it destroys nothing'],
  idempotentHint: ['it may be called again', 'a second call does more'],
  openWorldHint: ['it reaches other systems', 'it stays within its own']
}

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
      return hints.length > 0 ? [['Annotations', hints.join(', ')]] : []
    },
    method: 'tools/call',
    paramsOf: (name, args) => `{"name":${JSON.stringify(name)},"arguments":${args}}`
  })
}
export default routes

/** Texts for a tool's annotations, if true and if false. */
const hintsOf: Readonly<Record<string, readonly [string, string]>> = {
  readOnlyHint: ['read-only', 'makes changes'],
  destructiveHint: ['may destroy data', 'destroys nothing'],
  idempotentHint: ['safe to repeat', 'not safe to repeat'],
  openWorldHint: ['reaches other systems', 'stays within its own system']
}

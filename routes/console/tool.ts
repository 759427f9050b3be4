import type { FastifyPluginAsync } from 'fastify'
import { addItemPages } from './item.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** The page of a tool, with its override and a form that calls the tool. */
const routes: FastifyPluginAsync = async (app) => {
  addItemPages(app, {
    kind: 'tools',
    schemaOf: ({ inputSchema }) => inputSchema,
    factsOf: ({ annotations }) => {
      const stated = isPlainObject(annotations) ? annotations : {}
      const hints = Object.entries(annotationTexts).flatMap(([hint, [yes, no]]) =>
        typeof stated[hint] === 'boolean' ? [stated[hint] ? yes : no] : [])
      return hints.length > 0 ? [['Annotations', hints.join(', ')]] : []
    },
    method: 'tools/call',
    paramsOf: (name, args) => `{"name":${JSON.stringify(name)},"arguments":${args}}`
  })
}
export default routes

/** The texts for each annotation of a tool: the first if the annotation is true, the second if it is false. */
const annotationTexts: Readonly<Record<string, readonly [string, string]>> = {
  readOnlyHint: ['read-only', 'makes changes'],
  destructiveHint: ['may destroy data', 'destroys nothing'],
  idempotentHint: ['safe to repeat', 'not safe to repeat'],
  openWorldHint: ['reaches other systems', 'stays within its own system']
}

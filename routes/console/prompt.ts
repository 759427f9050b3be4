import type { FastifyPluginAsync } from 'fastify'
import { addItemPages } from './item.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** The page of a prompt, with its override and a form that gets the prompt for the given arguments. */
const routes: FastifyPluginAsync = async (app) => {
  addItemPages(app, {
    kind: 'prompts',
    schemaOf: ({ arguments: list }) => {
      const all = (Array.isArray(list) ? list as unknown[] : []).filter(isPlainObject)
      return {
        type: 'object',
        properties: Object.fromEntries(all.map(({ name, title, description }) =>
          [String(name), { type: 'string', title: title ?? String(name), description }])),
        required: all.filter(({ required }) => required === true).map(({ name }) => String(name))
      }
    },
    factsOf: () => [],
    method: 'prompts/get',
    paramsOf: (name, args) => `{"name":${JSON.stringify(name)},"arguments":${args}}`
  })
}
export default routes

import type { FastifyPluginAsync } from 'fastify'
import { addItemPages } from './item.ts'

/** The page of a skill, with its override and a form that reads its text. */
const routes: FastifyPluginAsync = async (app) => {
  addItemPages(app, {
    kind: 'skills',
    schemaOf: () => ({ type: 'object' }),
    factsOf: ({ name, resources }) => [
      ['Name', name ?? ''],
      ['Files', Array.isArray(resources) ? String(resources.length) : 'varies']
    ],
    method: 'resources/read',
    paramsOf: (uri) => JSON.stringify({ uri })
  })
}
export default routes

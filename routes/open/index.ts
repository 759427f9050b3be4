import type { FastifyRequest } from 'fastify'
import { bytesOf, readText } from '../../plugins/body/index.ts'
import { toolError } from '../../plugins/errors/index.ts'
import { enterScope } from '../../plugins/scopes/index.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import documents from './documents.ts'
import tools from './tools.ts'

/** Scope `open`: credentials are optional, errors say `{success: false, error, message}`, bodies stay text. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  enterScope(app, 'open')
  app.setErrorHandler(toolError)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', async (_request: FastifyRequest, payload: FastifyRequest['raw']) =>
    await readText(payload, bytesOf(app.settings.current.system.routing?.jsonBodyLimit ?? '1mb')))
  await app.register(documents)
  await app.register(tools)
}
export default routes

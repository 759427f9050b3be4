import { sendPlainHttpError } from '../../plugins/base/errors/index.ts'
import { setRouteScope } from '../../plugins/base/scopes/index.ts'
import { addJsonTextBodyParser } from '../bodies.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import documents from './documents.ts'
import tools from './tools.ts'

/** Scope `open`: credentials are optional, errors are `{success: false, error, message}`, bodies stay unparsed text. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  setRouteScope(app, 'open')
  app.setErrorHandler(sendPlainHttpError)
  addJsonTextBodyParser(app)
  await app.register(documents)
  await app.register(tools)
}
export default routes

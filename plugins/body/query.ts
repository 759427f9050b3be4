import type { preValidationHookHandler } from 'fastify'
import { errors } from '../errors/list.ts'

/** Refuses a query with escapes that are no UTF-8: they would be taken for the text that they are written in. */
export const checkQuery: preValidationHookHandler = (request, _reply, done) => {
  const { url, is404 } = request
  const at = url.indexOf('?')
  if (at >= 0 && !is404 && url.includes('%', at)) {
    try {
      decodeURIComponent(url.slice(at))
    } catch {
      done(new errors.InvalidInput('The query is not valid: percent-encode it as UTF-8'))
      return
    }
  }
  done()
}

import type { preValidationHookHandler } from 'fastify'
import { errors } from '../errors/list.ts'

/** Refuses a query whose percent-encoding is not valid UTF-8: Fastify would pass the escapes on as literal text. */
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

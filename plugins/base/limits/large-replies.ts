import type { onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { chunkedReply } from './large-body.ts'
import { memory } from './memory.ts'
import { worthCounting } from './unread.ts'

/** Turns a large body into a stream of its pieces; that of an answer to HEAD is not sent at all. */
const inPieces: onSendHookHandler = ({ method }, reply, payload, done) => {
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload)
  if (!isWhole || payload.length <= worthCounting || method === 'HEAD') {
    done(null, payload)
    return
  }
  const length = Buffer.byteLength(payload)
  reply.header('content-length', length)
  done(null, chunkedReply(reply.raw, [payload], length))
}

/**
 * Configures the memory budget, and sends the large answers of all routes in pieces, as their clients read them:
 * written in one piece, 15 MiB hold the event loop for a tenth of a second. They count as unread meanwhile.
 */
export default fp(async (app) => {
  memory.configure(app.config.env.MEMORY_BUDGET)
  // A route's own hooks run after those of all plugins, which may look at the whole body.
  await app.annexes.onEveryApp(app, (each) => {
    each.addHook('onRoute', (route) => { route.onSend = [route.onSend ?? [], inPieces].flat() })
  })
}, { name: 'large-replies', dependencies: ['config'] })

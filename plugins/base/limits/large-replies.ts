import type { onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { pacedReply } from './paced-reply.ts'
import { memoryBudget } from './memory.ts'
import { maxUncountedReply } from './unread.ts'

/** A hook that replaces a large body by a stream of pieces. Responses to HEAD, which have no body, are unchanged. */
const streamLargeReply: onSendHookHandler = ({ method }, reply, payload, done) => {
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload)
  if (!isWhole || payload.length <= maxUncountedReply || method === 'HEAD') {
    done(null, payload)
    return
  }
  const length = Buffer.byteLength(payload)
  reply.header('content-length', length)
  done(null, pacedReply(reply.raw, [payload], length))
}

/**
 * Sets the size of the memory budget, and sends the large responses of all routes in pieces, as fast as the client
 * reads them: writing many megabytes at once would block the event loop. Pieces count as unread until they are sent.
 */
export default fp(async (app) => {
  memoryBudget.configure(app.config.env.MEMORY_BUDGET)
  // A route's own hooks run after those of plugins, which may need the whole body.
  await app.annexes.onEveryApp(app, (each) => {
    each.addHook('onRoute', (route) => { route.onSend = [route.onSend ?? [], streamLargeReply].flat() })
  })
}, { name: 'large-replies', dependencies: ['config'] })

import type { onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { chunkedReply } from './large-body.ts'
import { memory } from './memory.ts'
import { maxUncountedReply } from './unread.ts'

/** Turns a large body into a stream of pieces, except in responses to HEAD, which have no body. */
const streamLargeReply: onSendHookHandler = ({ method }, reply, payload, done) => {
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload)
  if (!isWhole || payload.length <= maxUncountedReply || method === 'HEAD') {
    done(null, payload)
    return
  }
  const length = Buffer.byteLength(payload)
  reply.header('content-length', length)
  done(null, chunkedReply(reply.raw, [payload], length))
}

/**
 * Configures the memory budget, and streams large responses of all routes as their clients read them: writing 15 MiB in
 * one piece blocks the event loop for a tenth of a second. Pieces count as unread until they are sent.
 */
export default fp(async (app) => {
  memory.configure(app.config.env.MEMORY_BUDGET)
  // A route's own hooks run after those of plugins, which may need the whole body.
  await app.annexes.onEveryApp(app, (each) => {
    each.addHook('onRoute', (route) => { route.onSend = [route.onSend ?? [], streamLargeReply].flat() })
  })
}, { name: 'large-replies', dependencies: ['config'] })

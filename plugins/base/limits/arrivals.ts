import fp from 'fastify-plugin'
import { noteArrival } from '../../../protocol/yield.ts'

/** Lets requests that arrive go before steps of long work, such as the reading of a large body. */
export default fp(async (app) => {
  app.addHook('onRequest', (_request, _reply, done) => {
    noteArrival()
    done()
  })
}, { name: 'arrivals' })

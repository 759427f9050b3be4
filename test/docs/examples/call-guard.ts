import fp from 'fastify-plugin'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'

export interface CallGuardOptions {
  /** Calls that take longer are logged, in ms. */
  slow: number
}

/** Refuses tools whose names announce a deletion, and logs slow calls. */
export default fp<CallGuardOptions>(async (app, { slow }) => {
  app.gateway.addHook('onCall', ({ item = '' }) => {
    if (/^(delete|drop)/i.test(item)) throw new RpcError(rpcCode.invalidParams, `The tool ${item} is not allowed here`)
  })
  app.gateway.addHook('onDone', ({ provider, item, outcome, duration }) => {
    if (duration > slow) app.log.warn({ provider, item, outcome, duration }, 'a call was slow')
  })
}, { name: 'call-guard', dependencies: ['base', 'gateway'] })

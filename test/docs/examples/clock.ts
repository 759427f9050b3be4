import fp from 'fastify-plugin'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { makeStaticCatalogue } from '../../../protocol/lists.ts'
import type { Provider } from '../../../protocol/provider.ts'

const catalogue = makeStaticCatalogue({
  name: 'clock',
  version: '1',
  tools: [{ name: 'now', description: 'Tells the time', inputSchema: { type: 'object', properties: { zone: { type: 'string' } } } }]
})

const clock: Provider = {
  name: 'clock',
  catalogue: () => catalogue,
  call: async ({ params }, { name }) => {
    if (name !== '"now"') throw new RpcError(rpcCode.invalidParams, `The clock has no item ${name}`)
    const { zone = 'UTC' } = params.arguments as { zone?: string }
    const text = new Date().toLocaleTimeString('en-GB', { timeZone: zone, timeZoneName: 'short' })
    return { kind: 'response', id: null, resultText: JSON.stringify({ content: [{ type: 'text', text }] }) }
  }
}

/** A provider of the gateway's own with one tool. */
export default fp(async (app) => {
  app.gateway.addProvider(clock, { visibility: 'public' })
}, { name: 'clock', dependencies: ['gateway'] })

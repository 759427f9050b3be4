import { RpcError } from '../../protocol/errors.ts'
import { makeStaticCatalogue } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'

const number = { type: 'number' }
const catalogue = makeStaticCatalogue({
  name: 'toy',
  version: '1',
  tools: [
    { name: 'add', description: 'Adds', inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] } },
    { name: 'fail', description: 'Fails', inputSchema: { type: 'object' } }
  ],
  prompts: [{ name: 'greet', description: 'Greets' }]
})

/** A provider of the program's own, as small as one can be: two tools and a prompt. */
export const toy: Provider = {
  name: 'toy',
  catalogue: () => catalogue,
  call: async ({ method, params }, changes) => {
    const name: unknown = JSON.parse(changes.name ?? 'null')
    const given = params.arguments as { a: number, b: number, why?: string }
    if (method === 'tools/call' && name === 'add') return result({ content: [{ type: 'text', text: String(given.a + given.b) }] })
    if (method === 'prompts/get' && name === 'greet') return result({ messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }] })
    if (given.why === 'away') throw new RpcError(-32001, 'Server "toy" is not connected', 'not-connected')
    return { kind: 'response', id: null, errorText: '{"code":-5,"message":"It failed","data":1e400}' }
  }
}

const result = (value: object): Awaited<ReturnType<Provider['call']>> => ({ kind: 'response', id: null, resultText: JSON.stringify(value) })

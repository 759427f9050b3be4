// Documents of many tools, without a gateway.
import assert from 'node:assert/strict'
import { makeView } from '../../plugins/settings/access/view.ts'
import { ItemClaims } from '../../plugins/gateway/claims.ts'
import { Precedence } from '../../plugins/gateway/precedence.ts'
import { OpenApiDocuments } from '../../plugins/downstream/openapi/openapi.ts'
import { makeStaticCatalogue, type Catalogue } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import { tool } from '../fakes/fault-http.ts'
import type { Cleanup } from './hub.ts'
import { several } from './open-tools.ts'

const manyProperties = {
  q: { type: 'string', description: 'What to look for' },
  n: { anyOf: [{ type: 'integer', exclusiveMinimum: 0 }, { type: 'null' }], default: null },
  tags: { type: 'array', items: { $ref: '#/$defs/Tag' } },
  o: { type: 'object', properties: several(6, { type: ['string', 'null'] }), additionalProperties: false }
}
/** As many tools as a large API has, each of a size that they have. */
export const manyTools = (count: number, name = 'tool'): Array<{ key: string; text: string }> =>
  Array.from({ length: count }, (_, n) => ({
    key: `${name}-${n}`,
    text: JSON.stringify(
      tool(`${name}-${n}`, {
        description: 'A tool that does something. '.repeat(10),
        inputSchema: {
          type: 'object',
          properties: manyProperties,
          required: ['q'],
          $defs: { Tag: { type: 'object', properties: { name: { type: 'string' }, parent: { $ref: '#/$defs/Tag' } } } }
        }
      })
    )
  }))
/** Documents of one server whose catalogue and settings a test may change. */
export function documentsOf (t: Cleanup, items: Array<{ key: string, text: string }>) {
  const world = { items }
  const catalogue = (): Catalogue => {
    const { lists, ...rest } = makeStaticCatalogue({ name: 'big', version: '1' })
    return { ...rest, lists: { ...lists, tools: world.items } }
  }
  const view = makeView({ key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }, { kind: 'global', open: true })
  const provider: Provider = { name: 'big', status: 'connected', catalogue, call: async () => assert.fail() }
  const openapi = new OpenApiDocuments({
    access: { viewOfOpenRoute: () => view },
    gateway: {
      precedence: (sections, separator) => new Precedence(sections, separator, () => new ItemClaims()),
      filteredView: (asked) => asked,
      sections: () => [{ server: { name: 'big', config: {} }, label: 'big', member: { name: 'big' }, isOwnedByAdmin: true, provider, catalogue: catalogue() }]
    },
    base: () => ''
  })
  t.after(() => { openapi.close() })
  return {
    world,
    ask: async (title: string, format: 'json' | 'yaml' = 'json', hold?: (bytes: number) => void) =>
      await openapi.document(view.principal, undefined, { title }, format, '127.0.0.1', hold)
  }
}

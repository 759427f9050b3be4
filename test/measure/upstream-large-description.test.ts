// How long a large description holds the event loop.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { measureHold } from '../fakes/loop-hold.ts'
import { restApi } from '../fakes/rest-api.ts'
import { openapi, restClient } from '../fakes/rest-client.ts'
import { median } from '../helpers/measured.ts'

test('a large description does not hold up the event loop', async (t) => {
  const near = (at: number): string => `#/components/schemas/S${at - at % 5 + (at + 1) % 5}`
  const schemas = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [
    `S${at}`,
    {
      type: 'object',
      description: 'words '.repeat(20),
      properties: { id: { type: 'integer' }, next: { $ref: near(at) }, kind: { type: 'string', enum: ['a', 'b', 'c'] } }
    }
  ]))
  const paths = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [
    `/p${at}/{id}`,
    {
      post: {
        operationId: `op${at}`,
        description: 'words '.repeat(50),
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        requestBody: {
          content: {
            'application/json': {
              schema: {
                type: 'object',
                properties: {
                  a: { type: 'string', description: 'more words '.repeat(100) },
                  b: { type: 'array', items: { $ref: near(at) } }
                }
              }
            }
          }
        },
        responses: { 200: { description: 'words '.repeat(300) } }
      }
    }
  ]))
  const document = Buffer.from(JSON.stringify(openapi(paths, { components: { schemas } })))
  assert.ok(document.length > 9_000_000)
  const api = await restApi(t)
  api.at('/large.json', (_request, response) => { response.end(document) })
  const held = await median(t, 'held, in ms', async () => {
    const stop = measureHold()
    const client = await restClient(t, { url: `${api.url}/large.json` })
    const { lists } = await client.catalogue()
    const longest = stop()
    assert.equal(lists.tools.length, 3_000)
    return longest
  })
  assert.ok(held < 50, `held for ${held} ms`)
})

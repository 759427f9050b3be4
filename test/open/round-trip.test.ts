// Both ways in one: an API's description becomes tools, the tools become a document, and what is called as the document says reaches the
// API.
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { appFor } from '../helpers/app.ts'
import { json, restApi } from '../fakes/rest-api.ts'
import { until } from '../helpers/hub.ts'

type Json = Record<string, unknown>
interface Operation { operationId: string, parameters?: Array<{ name: string, in: string }>, requestBody?: object }
interface Document { servers: Array<{ url: string }>, paths: Record<string, Record<string, Operation>> }

const string = { type: 'string' }
const description = {
  openapi: '3.1.0',
  info: { title: 'Pets', version: '1' },
  paths: {
    '/pets/{id}': {
      get: {
        operationId: 'getPet',
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
          { name: 'fields', in: 'query', schema: { type: 'array', items: string }, style: 'form', explode: false }
        ],
        responses: { 200: { description: 'a pet' } }
      },
      put: {
        operationId: 'putPet',
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
        requestBody: { required: true, content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } } },
        responses: { 200: { description: 'it' } }
      }
    },
    '/pets': {
      get: {
        summary: 'without a name of its own',
        parameters: [{ name: 'X-Trace', in: 'header', schema: string }],
        responses: { 200: { description: 'all' } }
      }
    },
    '/broken': { get: { operationId: 'fail', responses: { 418: { description: 'never' } } } }
  },
  components: {
    schemas: {
      Pet: {
        type: 'object',
        required: ['name'],
        properties: { name: string, parent: { $ref: '#/components/schemas/Pet' }, age: { type: ['integer', 'null'] } }
      }
    }
  }
}

test('an API, as tools, as a document, called: the API\'s own answer', async (t) => {
  const api = await restApi(t)
  api.answer(({ method, url, body, headers }, response) => {
    if (url === '/broken') json(response, { why: 'a teapot' }, 418)
    else {
      json(response, {
        method,
        url,
        trace: headers['x-trace'] ?? null,
        body: body.length === 0 ? null : (JSON.parse(String(body)) as unknown),
        exact: 9_007_199_254_740_991
      })
    }
  })
  const app = await appFor(t, {
    mcpServers: { pets: { type: 'openapi', url: api.url, openapi: { schema: description }, visibility: 'public' } }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  await until(() => app.upstreams.counts().connected === 1, 'the API never became a server')

  const document = await (await fetch(`${url}/api/pets/openapi.json`)).json() as Document
  const operations = new Map(
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => [operation.operationId, { path, method, operation }] as const)
    )
  )
  assert.equal(operations.size, 4)

  /** As a caller that knows nothing but the document. */
  const call = async (id: string, args: Json): Promise<Json> => {
    const found = operations.get(id)
    assert.ok(found, `no operation ${id} among ${[...operations.keys()].join(', ')}`)
    const { path, method, operation } = found
    const address = new URL(`${url}${document.servers[0]?.url ?? ''}${path}`)
    if (method === 'get') for (const [name, value] of Object.entries(args)) address.searchParams.append(name, String(value))
    assert.equal(operation.requestBody !== undefined, method === 'post', id)
    const reply = await fetch(address, {
      method: method.toUpperCase(),
      ...(method === 'post' ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(args) } : {})
    })
    assert.equal(reply.status, 200, id)
    return await reply.json() as Json
  }
  const answerOf = (result: Json): unknown => {
    const [first] = result.content as Array<{ text: string }>
    assert.deepEqual(JSON.parse(first?.text ?? ''), result.structuredContent, 'text and structure say the same')
    return result.structuredContent
  }

  assert.deepEqual(answerOf(await call('pets_getPet', { id: 7, fields: ['name', 'age'] })), {
    method: 'GET', url: '/pets/7?fields=name,age', trace: null, body: null, exact: 9_007_199_254_740_991
  })
  assert.deepEqual(
    answerOf(await call('pets_putPet', { id: 7, name: 'Ada', parent: { name: 'Eve', parent: { name: 'Zoe' } }, age: null })),
    {
      method: 'PUT',
      url: '/pets/7',
      trace: null,
      body: { name: 'Ada', parent: { name: 'Eve', parent: { name: 'Zoe' } }, age: null },
      exact: 9_007_199_254_740_991
    }
  )
  const unnamed = [...operations.keys()].find((id) => !['pets_getPet', 'pets_putPet', 'pets_fail'].includes(id)) ?? ''
  assert.deepEqual(answerOf(await call(unnamed, { 'X-Trace': 'abc' })), {
    method: 'GET', url: '/pets', trace: 'abc', body: null, exact: 9_007_199_254_740_991
  })
  const failed = await call('pets_fail', {})
  assert.equal(failed.isError, true)
  assert.match(JSON.stringify(failed.content), /418.*a teapot/s)
})

// The API's own document is complete enough to make a client of, and the client works: it compiles against the generated types,
// which refuse what the API would refuse, and it runs against a gateway.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { validate } from '@readme/openapi-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import openapiTS, { astToString } from 'openapi-typescript'
import { at, settings, type Json } from '../helpers/client.ts'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { path, startHub, type Cleanup, type Hub } from '../helpers/hub.ts'
import { runToEnd, type Run } from '../helpers/programs.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

const PASSWORD = 'Open-Sesame-1'

const documentOf = async (hub: Hub): Promise<Json> => await (await fetch(`${hub.url}/docs/json`)).json() as Json

interface Operation { name: string, method: string, path: string, operation: Json }
const operationsOf = (document: Json): Operation[] =>
  Object.entries(document.paths as Json).flatMap(([path, item]) =>
    Object.entries(item as Json).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`, method, path, operation: operation as Json
    }))
  )

/** What a reference within the document stands for. */
const resolve = (document: Json, value: unknown): unknown => {
  const ref = at(value, '$ref')
  return typeof ref === 'string' ? resolve(document, at(document, ...ref.slice(2).split('/'))) : value
}

test('the document', async (t) => {
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: PASSWORD } })
  const document = await documentOf(hub)
  const operations = operationsOf(document)
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajv.addSchema({ ...document, $id: 'document' })

  /** Every operation has something. */
  const every = (what: string, has: (one: Operation) => boolean): void => {
    assert.deepEqual(operations.filter((one) => !has(one)).map(({ name }) => name), [], what)
  }
  const validators = new Map<string, ValidateFunction>()
  /** Validates by a schema in the document, in which references are followed. Many are the same: each is compiled once. */
  const validatorOf = (schema: unknown): ValidateFunction => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')
    const validator = validators.get(text) ?? ajv.compile(JSON.parse(text) as Json)
    validators.set(text, validator)
    return validator
  }
  const responses = ({ operation }: Operation): [string, unknown][] =>
    Object.entries(operation.responses as Json).map(([status, one]) => [status, resolve(document, one)])
  const managed = ({ path }: Operation): boolean => path.startsWith('/api/') && !/openapi|\/stream$|^\/api\/(\{name\}\/)?tools\/\{/.test(path)

  await t.test('is OpenAPI 3.1, by two validators that are not ours', async () => {
    assert.match(String(document.openapi), /^3\.1\./)
    const first = await validate(structuredClone(document) as Parameters<typeof validate>[0])
    assert.ok(first.valid, JSON.stringify(first, null, 1).slice(0, 3_000))
    const second = await new Validator().validate(structuredClone(document))
    assert.ok(second.valid, JSON.stringify(second).slice(0, 3_000))
  })

  await t.test('every schema in it compiles', async () => {
    const look = (value: unknown, where: string): void => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, inner] of Object.entries(value)) {
        if (key === 'schema' && typeof inner === 'object') {
          assert.doesNotThrow(() => validatorOf(inner), where)
        } else look(inner, `${where}/${key}`)
      }
    }
    look(document.paths, '')
  })

  await t.test('every operation has a summary, a name of its own, a tag, and its parameters', async () => {
    assert.ok(operations.length > 50, String(operations.length))
    every('summary', ({ operation }) => typeof operation.summary === 'string' && operation.summary !== '')
    every('name', ({ operation }) => typeof operation.operationId === 'string')
    assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length)
    every('tag', ({ operation }) => (operation.tags as unknown[] | undefined)?.length === 1)
    every('parameters', ({ path, operation }) => [...path.matchAll(/\{(\w+)\}/g)].every(([, name]) =>
      (operation.parameters as Json[]).some((parameter) => parameter.name === name && parameter.in === 'path')))
  })

  const successes = (one: Operation): unknown[] =>
    responses(one).filter(([status]) => status.startsWith('2')).map(([, response]) => response)
  await t.test('every operation says what it answers', async () => {
    every('content', (one) => successes(one).some((response) => Object.keys((at(response, 'content') as Json | undefined) ?? {}).length > 0))
    every('the envelope', (one) => !managed(one) || successes(one).every((response) => {
      const schema = at(response, 'content', 'application/json', 'schema')
      return at(resolve(document, schema), 'properties', 'success') !== undefined || at(schema, 'anyOf') !== undefined
    }))
  })

  await t.test('and how it fails, in the envelope', async () => {
    const has = (one: Operation, ...statuses: number[]): boolean =>
      statuses.every((status) => responses(one).some(([code]) => code === String(status)))
    const locked = (one: Operation): boolean => managed(one) && (one.operation.security as unknown[] | undefined)?.length !== 0
    assert.ok(operations.filter(locked).length >= 40)
    every('401, 403', (one) => !locked(one) || has(one, 401, 403))
    every('404', (one) => !managed(one) || !one.path.includes('{') || has(one, 404))
    every('400, 413, 415', (one) => !managed(one) || one.operation.requestBody === undefined || has(one, 400, 413, 415))
    every('a body that is not asked for is read, too', (one) => !managed(one) || one.method === 'get' || has(one, 413, 415))
    every('open tools', (one) => !one.path.includes('tools/{server}/{tool}') ||
      has(one, 400, 403, 404, 502, 503, 504, ...(one.method === 'post' ? [413, 415] : [])))
    every('readiness', (one) => one.path !== '/health/ready' || has(one, 503))
    every('a foreign Host', (one) => one.path.startsWith('/health') || has(one, 403))
    every('YAML', (one) => !one.path.endsWith('.yaml') ||
      Object.keys(at(responses(one).find(([status]) => status === '200')?.[1], 'content') as Json).join() === 'application/yaml')
    every('502, 504', (one) => !/\/tools\/call\/|\/mcp\/\{/.test(one.path) || has(one, 502, 504))
    const failure = { success: false, message: 'Why', code: 'TH_X', errors: [{ path: 'a', message: 'b' }] }
    for (const one of operations.filter(managed)) {
      for (const [status, response] of responses(one).filter(([code]) => /^[45]/.test(code))) {
        assert.ok(typeof at(response, 'description') === 'string' && at(response, 'description') !== '', `${one.name} ${status}`)
        const schema = resolve(document, at(response, 'content', 'application/json', 'schema'))
        assert.ok(ajv.validate(schema as Json, failure), `${one.name} ${status}: ${JSON.stringify(schema)}`)
      }
    }
  })

  await t.test('every body has an example, and so has what is answered to no body; each fits', async () => {
    const examplesOf = (content: unknown): unknown[] => {
      const schema = resolve(document, at(content, 'schema'))
      return [
        at(content, 'example'),
        ...Object.values((at(content, 'examples') as Json | undefined) ?? {}).map((one) => at(one, 'value')),
        ...((at(schema, 'examples') as unknown[] | undefined) ?? [])
      ].filter((one) => one !== undefined)
    }
    // An uploaded file has no example.
    const bodies = ({ operation }: Operation): unknown[] => {
      const content = at(operation, 'requestBody', 'content', 'application/json')
      return content === undefined ? [] : [content]
    }
    const answers = (one: Operation): unknown[] => successes(one).flatMap((response) => Object.values(at(response, 'content') as Json))
    every('an example of its body', (one) => bodies(one).every((content) => examplesOf(content).length > 0))
    every('an example of its answer', (one) =>
      one.operation.requestBody !== undefined || answers(one).every((content) => examplesOf(content).length > 0))
    every('a body', ({ method, operation, path }) =>
      !['post', 'put'].includes(method) || operation.requestBody !== undefined || /\/(reload|regenerate-secret|approve|deny|cancel)$/.test(path))
    for (const one of operations) {
      for (const content of [...answers(one), ...bodies(one)]) {
        const fits = validatorOf(at(content, 'schema'))
        for (const example of examplesOf(content)) {
          assert.ok(fits(example), `${one.name}: ${JSON.stringify(example)} ${ajv.errorsText(fits.errors)}`)
        }
      }
    }
  })

  await t.test('the config of a server and the system configuration have their members, with words and defaults', async () => {
    assert.deepEqual(
      ['command', 'args', 'env', 'url', 'headers', 'openapi', 'visibility', 'owner', 'passthroughHeaders', 'options', 'isolation'].filter(
        (key) => at(document, 'components', 'schemas', 'ServerConfig', 'properties', key) === undefined
      ),
      []
    )
    const body = resolve(
      document,
      at(document, 'paths', '/api/system-config', 'put', 'requestBody', 'content', 'application/json', 'schema')
    )
    assert.deepEqual(Object.keys(at(body, 'properties') as Json).sort(), [
      'enableSessionRebuild', 'install', 'mcpRouter', 'nameSeparator', 'notifications', 'oauthServer', 'routing',
      'smartRouting', 'toolResultCompression'
    ])
    const minTokens = at(body, 'properties', 'toolResultCompression', 'anyOf', 0, 'properties', 'minTokens')
    assert.equal(at(minTokens, 'default'), 2_000)
    const ask = ajv.compile({ $ref: 'document#/components/schemas/SystemConfig' })
    assert.ok(ask({ toolResultCompression: { minTokens: null }, routing: null, nameSeparator: null }), 'null resets')
    assert.ok(!ask({ toolResultCompression: { minTokens: 'many' } }))
  })
})

test('below a base path it is the same document, served there', async (t) => {
  const [plain, deep] = await Promise.all([
    startHub(t, { env: { ADMIN_PASSWORD: PASSWORD } }),
    startHub(t, { env: { ADMIN_PASSWORD: PASSWORD, BASE_PATH: '/deep/hub' } })
  ])
  const [here, there] = [await documentOf(plain), await documentOf(deep)]
  assert.deepEqual([at(here, 'servers', 0, 'url'), at(there, 'servers', 0, 'url')], ['/', '/deep/hub'])
  assert.deepEqual({ ...there, servers: here.servers }, here)
})

/** Uses the types from end to end. What stands below `@ts-expect-error` must not compile. */
const program = `
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './management-api.ts'

const { HUB: baseUrl = '', PASSWORD: password = '', UPSTREAM: url = '' } = process.env
const hub = createClient<paths>({ baseUrl })

const refused = await hub.GET('/api/servers')
assert.equal(refused.response.status, 401)
const failure: components['schemas']['Failure'] | undefined = refused.error
assert.equal(failure?.success, false)

const login = await hub.POST('/api/auth/login', { body: { username: 'admin', password } })
if (!login.data) throw new Error(login.error.message)
const token: string = login.data.token
const admin: boolean = login.data.user.permissions.admin
assert.equal(admin, true)
hub.use({ onRequest ({ request }) { request.headers.set('x-auth-token', token) } })

const config: components['schemas']['ServerConfig'] = {
  type: 'streamable-http',
  url,
  headers: { 'X-Key': 'a-key-of-this-server' },
  options: { timeout: 5_000 }
}
const made = await hub.POST('/api/servers', { body: { name: 'typed one', config } })
if (!made.data) throw new Error(made.error.message)
type Status = 'connecting' | 'connected' | 'disconnected' | 'oauth_required' | 'disabled'
const { name, status, error }: { name: string, status: Status, error: string | null } = made.data.data
assert.deepEqual([name, error], ['typed one', null])

const byName = { params: { path: { name } } }
let state: string = status
for (let n = 0; n < 600 && state !== 'connected'; n++) {
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  state = (await hub.GET('/api/servers/{name}', byName)).data?.data.status ?? ''
}
assert.equal(state, 'connected')

const record = (await hub.GET('/api/servers/{name}', byName)).data?.data
assert.equal(record?.tools[0]?.enabled, true)
assert.equal(record?.enabled, true)
const all = (await hub.GET('/api/settings')).data?.data
assert.deepEqual(Object.keys(all?.mcpServers ?? {}), all?.servers.map(({ name }) => name))
const back = await hub.PUT('/api/servers/{name}', { ...byName, body: { config: record?.config ?? {} } })
assert.deepEqual(back.data?.data.config, record?.config)

const toggled = await hub.POST('/api/servers/{serverName}/resources/{resourceUri}/toggle', {
  params: { path: { serverName: name, resourceUri: 'fault://a/b c?d#e' } },
  body: { enabled: false }
})
assert.equal(toggled.data?.data.enabled, false)
const described = await hub.PUT('/api/servers/{serverName}/tools/{toolName}/description', {
  params: { path: { serverName: name, toolName: 'a/b' } },
  body: { description: 'Ours' }
})
assert.equal(described.data?.data.overridden, true)

const batch = await hub.POST('/api/servers/batch', {
  body: { servers: [{ name: 'more', config: { url, enabled: false } }, { name: 'call', config: { url } }] }
})
assert.equal(batch.response.status, 207)
const results: Array<{ name: string, success: boolean, message?: string }> = batch.data?.data.results ?? []
assert.deepEqual(results.map(({ success }) => success), [true, false])

const group = await hub.POST('/api/groups', {
  body: { name: 'typed', servers: ['more', { name, tools: ['a/b'], prompts: 'all', resources: 'all' }] }
})
const id: string = group.data?.data.id ?? ''
const members = await hub.GET('/api/groups/{id}/server-configs', { params: { path: { id } } })
assert.deepEqual(members.data?.data.map(({ tools }) => tools), ['all', ['a/b']])

const called = await hub.POST('/api/tools/call/{server}', {
  params: { path: { server: name } },
  body: { toolName: 'a/b', arguments: { message: 'typed' } }
})
assert.equal(called.data?.success, true)
assert.match(JSON.stringify(called.data?.data), /"text":"typed"/)
const filled = await hub.POST('/api/mcp/{serverName}/prompts/{promptName}', {
  params: { path: { serverName: name, promptName: 'greet' } },
  body: { arguments: {} }
})
assert.equal(filled.response.status, 200)

const changed = await hub.PUT('/api/system-config', { body: { nameSeparator: '_', toolResultCompression: { strategy: 'log' } } })
assert.equal(changed.response.status, 200)
const reset = await hub.PUT('/api/system-config', { body: { nameSeparator: null, toolResultCompression: null } })
assert.equal(reset.response.status, 200)
const settings = await hub.GET('/api/settings')
assert.ok(settings.data?.data.servers.length === 2)
const pages = await hub.GET('/api/servers', { params: { query: { limit: 1 } } })
assert.ok(typeof pages.data?.nextCursor === 'string')

const nobody = await hub.GET('/api/servers/{name}', { params: { path: { name: 'nobody' } } })
assert.equal(nobody.response.status, 404)
const why: string | undefined = nobody.error?.message
assert.ok(why)
await hub.DELETE('/api/servers/{name}', byName)

export const wrong = async (): Promise<void> => {
  // @ts-expect-error there is no such route
  await hub.GET('/api/nothing')
  // @ts-expect-error a server has a config
  await hub.POST('/api/servers', { body: { name: 'x' } })
  // @ts-expect-error of a kind that there is
  await hub.POST('/api/servers', { body: { name: 'x', config: { type: 'carrier-pigeon' } } })
  // @ts-expect-error enabled is a boolean
  await hub.POST('/api/servers/{name}/toggle', { ...byName, body: { enabled: 'yes' } })
  // @ts-expect-error the path has a name
  await hub.DELETE('/api/servers/{name}', { params: { path: {} } })
  const member = { id, serverName: name }
  // @ts-expect-error all, or a list
  await hub.PUT('/api/groups/{id}/server-configs/{serverName}/tools', { params: { path: member }, body: { tools: 'some' } })
  // @ts-expect-error a strategy that there is
  await hub.PUT('/api/system-config', { body: { toolResultCompression: { strategy: 'fast' } } })
}
console.log('all of it')
`

/** A folder with the generated types and these programs, that finds the packages of the project. */
async function workplace (t: Cleanup, document: Json, programs: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder(t)
  await symlink(path('node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: false,
        target: 'es2023',
        module: 'nodenext',
        moduleResolution: 'nodenext',
        allowImportingTsExtensions: true,
        noEmit: true,
        types: ['node'],
        skipLibCheck: true
      }
    })
  )
  await writeFile(join(folder, 'management-api.ts'), astToString(await openapiTS(JSON.stringify(document), { defaultNonNullable: false })))
  for (const [name, text] of Object.entries(programs)) await writeFile(join(folder, name), text)
  return folder
}

const run = async (cwd: string, args: string[], env: Record<string, string> = {}): Promise<Run> =>
  await runToEnd(process.execPath, args, { cwd, env })

test('a client generated from it compiles, and runs', async (t) => {
  const fake = await startUpstream(t, {
    tools: [tool('a/b')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'fault://a/b c?d#e', name: 'odd' }],
    on: ({ method }) => method === 'prompts/get' ? { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }] } : undefined
  })
  const hub = await startHub(t, { settings: settings({}), env: { ADMIN_PASSWORD: PASSWORD } })
  const document = await documentOf(hub)
  const tsc = path('node_modules/typescript-7/bin/tsc')
  const env = { HUB: hub.url, PASSWORD, UPSTREAM: fake.url }

  const shown = /<!-- typed client -->\n```ts\n(.*?)^```$/ms.exec(readFileSync(path('docs/api.md'), 'utf8'))?.[1]
  assert.ok(shown)
  const folder = await workplace(t, document, { 'program.ts': program, 'shown.ts': shown })
  const compiled = await run(folder, [tsc, '-p', '.', '--singleThreaded'])
  assert.equal(compiled.code, 0, compiled.said)

  await t.test('one that uses most of it', async () => {
    const ran = await run(folder, ['--import', 'tsx', 'program.ts'], env)
    assert.equal(ran.code, 0, ran.said)
    assert.match(ran.said, /all of it/)
  })

  await t.test('the one that docs/api.md shows', async () => {
    await managed(hub, 'POST', '/servers', { name: 'everything', config: { url: fake.url } })
    const ran = await run(folder, ['--import', 'tsx', 'shown.ts'], env)
    assert.equal(ran.code, 0, ran.said)
    assert.match(ran.said, /^(?:connected|connecting) \d$/m)
  })
})

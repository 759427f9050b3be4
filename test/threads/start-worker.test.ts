// The bound of a thread's memory, in processes that V8 is told of its heap.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { path } from '../helpers/hub.ts'

const code = `
  import { startWorker } from ${JSON.stringify(path('plugins/threads/start-worker.ts'))}
  const worker = startWorker('test/threads/greedy-worker', { resourceLimits: { maxOldGenerationSizeMb: 64 } })
  worker.on('error', ({ code }) => { console.log(code) }).on('message', () => { console.log('it took all that it wanted') })
`

void test('a thread ends at its own limit of memory, whatever V8 was told, and the process goes on', async (t) => {
  for (const option of ['', '--max-semi-space-size=64', '--max-old-space-size=4096', '--max-heap-size=4096']) {
    await t.test(option === '' ? 'nothing' : option, async () => {
      const args = [option, '--import=tsx', '--input-type=module', '--eval', code].filter(Boolean)
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: path('.'), timeout: 60_000 })
      assert.equal(stdout.trim(), 'ERR_WORKER_OUT_OF_MEMORY')
    })
  }
})

// The bound of a thread's memory, in processes that V8 is told of its heap.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { path } from '../../helpers/hub.ts'

const code = `
  import { startWorker } from ${JSON.stringify(path('plugins/base/threads/start-worker.ts'))}
  const worker = startWorker('test/base/threads/greedy-worker', { resourceLimits: { maxOldGenerationSizeMb: 64 } })
  worker.on('error', ({ code }) => { console.log(code) }).on('message', () => { console.log('it took all that it wanted') })
`

/** Each of them comes before the limit of a thread, where it is not taken back. V8 does not take all three together. */
const heapOptions = [['--max-semi-space-size=64', '--max-old-space-size=4096'], ['--max-heap-size=4096']]

for (const options of heapOptions) {
  test(`a thread ends at its own limit of memory, and the process goes on: V8 was told ${options.join(' ')}`, async () => {
    const args = [...options, '--import=tsx', '--input-type=module', '--eval', code]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: path('.') })
    assert.equal(stdout.trim(), 'ERR_WORKER_OUT_OF_MEMORY')
  })
}

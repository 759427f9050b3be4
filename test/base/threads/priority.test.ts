// Worker threads have a lower CPU priority: /proc tells, on Linux only.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'tap'
import { promisify } from 'node:util'
import { path } from '../../helpers/hub.ts'

const skip = process.platform === 'linux' ? false : 'needs /proc'
const workers = ['plugins/extensions/compression/worker', 'plugins/upstream/openapi/describe/worker']

/** Starts the workers one after the other, and prints by how much each thread's priority is lower, once that of one is. */
const code = `
  import { readdirSync, readFileSync } from 'node:fs'
  import { getPriority } from 'node:os'
  import { startWorker } from ${JSON.stringify(path('plugins/base/threads/start-worker.ts'))}
  const niceOf = (id) => Number(readFileSync('/proc/self/task/' + id + '/stat', 'utf8').split(') ')[1].split(' ')[16])
  const lowered = () => readdirSync('/proc/self/task').map(Number).map((id) => [id === process.pid, niceOf(id) - getPriority()])
  for (const name of ${JSON.stringify(workers)}) {
    const worker = startWorker(name, {})
    while (lowered().every(([, by]) => by === 0)) await new Promise((resolve) => { setTimeout(resolve, 20) })
    console.log(JSON.stringify(lowered()))
    await worker.terminate()
  }
`

test('worker threads give way to the main thread', { skip }, async () => {
  const args = ['--import=tsx', '--input-type=module', '--eval', code]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: path('.') })
  const printed = stdout.trim().split('\n').map((line) => JSON.parse(line) as Array<[isMain: boolean, by: number]>)
  assert.equal(printed.length, workers.length)
  for (const [n, threads] of printed.entries()) {
    assert.deepEqual(threads.filter(([isMain]) => isMain), [[true, 0]], workers[n])
    assert.deepEqual(threads.filter(([, by]) => by !== 0), [[false, 3]], workers[n])
  }
})

// Worker threads have a lower CPU priority: /proc tells, on Linux only.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'tap'
import { promisify } from 'node:util'
import { path } from '../helpers/hub.ts'

const skip = process.platform === 'linux' ? false : 'needs /proc'

const run = async (code: string, ...options: string[]): Promise<string> => {
  const args = [...options, '--import=tsx', '--input-type=module', '--eval', code]
  return (await promisify(execFile)(process.execPath, args, { cwd: path('.'), timeout: 60_000 })).stdout.trim()
}

/** Prints a number of each thread of the process: the field of `/proc/self/task/<id>/stat`, counted from the state. */
const ofThreads = `
  import { readdirSync, readFileSync } from 'node:fs'
  const ofThreads = (field) => readdirSync('/proc/self/task').map((id) =>
    [Number(id), Number(readFileSync('/proc/self/task/' + id + '/stat', 'utf8').split(') ')[1].split(' ')[field])])
`

void test('worker threads give way to the main thread', { skip }, async (t) => {
  for (const worker of ['plugins/compression/worker', 'plugins/upstream/openapi/describe/worker']) {
    await t.test(worker, async () => {
      const priorities = JSON.parse(await run(`${ofThreads}
        import { getPriority } from 'node:os'
        import { startWorker } from ${JSON.stringify(path('plugins/threads/start-worker.ts'))}
        const worker = startWorker(${JSON.stringify(worker)}, {})
        worker.on('online', async () => {
          for (let n = 0; n < 100 && ofThreads(16).every(([, nice]) => nice === getPriority()); n++) {
            await new Promise((resolve) => { setTimeout(resolve, 100) })
          }
          console.log(JSON.stringify(ofThreads(16).map(([id, nice]) => [id === process.pid, nice - getPriority()])))
          process.exit()
        })
      `)) as Array<[boolean, number]>
      assert.deepEqual(priorities.filter(([isMain]) => isMain), [[true, 0]])
      assert.deepEqual(priorities.filter(([, lower]) => lower !== 0), [[false, 3]])
    })
  }
})

// What a process costs that goes on printing when it is told to stop.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { path } from '../helpers/hub.ts'

test('a process that does not stop when told costs neither memory nor files', { skip: process.platform === 'linux' ? false : 'needs /proc' }, async () => {
  const babbler =
    "process.on('SIGTERM', () => {}); process.stdout.on('error', () => { process.exit() }); const b = 'x'.repeat(65536); const w = " +
    "() => { while (process.stdout.write(b)); process.stdout.once('drain', w) }; w()"
  // In a process of its own: what it costs must not fall on the other tests.
  const script = `
    import { readdirSync } from 'node:fs'
    import { getHeapStatistics } from 'node:v8'
    import { StdioTransport } from ${JSON.stringify(path('protocol/transports/stdio.ts'))}
    let files = 0, memory = 0
    const look = () => {
      memory = Math.max(memory, getHeapStatistics().external_memory)
      try { files = Math.max(files, readdirSync('/proc/self/fd').length) } catch { files = 1e9 }
    }
    const args = ['-e', ${JSON.stringify(babbler)}]
    const transport = new StdioTransport({ child: { command: process.execPath, args, env: {} }, onLine: () => {}, grace: 1500 })
    const closed = new Promise((resolve) => {
      transport.start({ message: () => {}, failed: () => {}, paused: () => {}, closed: resolve })
    })
    await closed
    const timer = setInterval(look, 20)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    clearInterval(timer)
    look()
    process.stdout.write(JSON.stringify({ files, mebibytes: memory >> 20 }) + '\\n', () => process.exit())`
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    cwd: path('.'),
    maxBuffer: 1e8
  })
  const { files, mebibytes } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { files: number, mebibytes: number }
  assert.ok(files < 200, `${files >= 1e9 ? 'all' : files} file descriptors are open`)
  assert.ok(mebibytes < 128, `${mebibytes} MiB are held`)
})

// What a gateway that was killed left running is ended by the next one. Linux only.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { ChildProcessManager } from '../../plugins/upstream/links/child-record.ts'
import { findProcess, isRunning } from '../../protocol/transports/process-table.ts'
import type { StartedProcess } from '../../protocol/transports/started-process.ts'
import { until } from '../helpers/hub.ts'

const onLinux = { skip: process.platform === 'linux' ? false : 'Linux only' }
const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()

interface Recorded { record: ChildProcessManager, folder: string, root: string, log: string[] }

function recordIn (t: Test): Recorded {
  const root = mkdtempSync(join(tmpdir(), 'tool-hub-record-'))
  t.after(() => { rmSync(root, { recursive: true, force: true }) })
  const log: string[] = []
  return { record: new ChildProcessManager(root, (level, sentence) => { log.push(`${level} ${sentence}`) }), folder: join(root, bootId()), root, log }
}

const start = async (record: ChildProcessManager, script: string, mark: string = randomUUID()): Promise<StartedProcess> =>
  await record.start({ command: 'sh', args: ['-c', script], env: { PATH: process.env.PATH ?? '', TOOL_HUB_CHILD: mark } })

/** A process that no record knows, leader of a group; killed with the test. */
async function stray (t: Test, env: Record<string, string> = {}): Promise<{ pid: number, started: string }> {
  const child = spawn('sleep', ['305'], { detached: true, stdio: 'ignore', env: { PATH: process.env.PATH, ...env } })
  await once(child, 'spawn')
  const { pid = 0 } = child
  t.after(() => { try { process.kill(-pid, 'SIGKILL') } catch {} })
  return findProcess(pid) ?? { pid, started: '' }
}

test('an entry is there while a process runs, and names it', onLinux, async (t) => {
  const { record, folder } = recordIn(t)
  const mark = randomUUID()
  const child = await start(record, 'cat', mark)
  const self = findProcess(process.pid)
  assert.deepEqual(readdirSync(folder), [`${self?.pid}_${self?.started}_${mark}`])
  const known = findProcess(child.pid)
  assert.equal(readFileSync(join(folder, readdirSync(folder)[0] ?? ''), 'utf8'), `${known?.pid} ${known?.started}`)
  // Of a gateway in another container, with the same id.
  const other = `${self?.pid}_${Number(self?.started) + 1}_${randomUUID()}`
  writeFileSync(join(folder, other), '')
  child.stdin.end()
  await child.exited
  await record.close()
  assert.deepEqual(readdirSync(folder), [other])
})

test('a command that cannot be started leaves no entry', onLinux, async (t) => {
  const { record, folder } = recordIn(t)
  const order = { command: 'no-such-command-1', args: [], env: { TOOL_HUB_CHILD: randomUUID() } }
  await assert.rejects(record.start(order), { code: 'ENOENT' })
  assert.deepEqual(readdirSync(folder), [])
})

test('of a gateway that is gone, groups are ended by id and start, and others by their mark', onLinux, async (t) => {
  const { record, folder, log } = recordIn(t)
  mkdirSync(folder)
  const [mark, other] = [randomUUID(), randomUUID()]
  const [group, daemon, young] = [await stray(t), await stray(t, { TOOL_HUB_CHILD: mark }), await stray(t)]
  const entry = (mark: string, text: string): void => { writeFileSync(join(folder, `1_0_${mark}`), text) }
  entry(other, `${group.pid} ${group.started}`)
  entry(mark, '')
  // A process that has the id of a former one, and started at another time.
  entry(randomUUID(), `${young.pid} ${Number(young.started) - 1}`)
  writeFileSync(join(folder, 'notes.txt'), `${young.pid} ${young.started}`)
  record.endOrphans()
  const child = await start(record, 'true')
  assert.deepEqual([group, daemon, young].map(isRunning), [false, false, true], 'a start waits for that')
  assert.deepEqual(log, ['info ended 2 processes left over from an earlier gateway'])
  await child.exited
  await record.close()
  assert.deepEqual(readdirSync(folder), ['notes.txt'])
})

test('the processes of a gateway that runs are left alone, and so is what an entry of another boot names', onLinux, async (t) => {
  const { record, folder, root, log } = recordIn(t)
  mkdirSync(folder)
  const [mine, former, gateway] = [await stray(t), await stray(t), await stray(t)]
  writeFileSync(join(folder, `${gateway.pid}_${gateway.started}_${randomUUID()}`), `${mine.pid} ${mine.started}`)
  mkdirSync(join(root, randomUUID()))
  for (const boot of readdirSync(root).filter((each) => each !== bootId())) {
    writeFileSync(join(root, boot, `1_0_${randomUUID()}`), `${former.pid} ${former.started}`)
  }
  record.endOrphans()
  await (await start(record, 'true')).exited
  assert.ok([mine, former].every(isRunning))
  assert.deepEqual(log, [])
  assert.deepEqual(readdirSync(root), [bootId()], 'what another boot has left is removed')
})

test('where nothing can be recorded, processes are started all the same, and the log says so', onLinux, async (t) => {
  const log: string[] = []
  const record = new ChildProcessManager('/proc/nowhere', (_level, sentence) => { log.push(sentence) })
  record.endOrphans()
  const child = await start(record, 'exit 3')
  t.after(() => { child.stdin.destroy() })
  assert.deepEqual(await child.exited, { code: 3, signal: null })
  await until(() => log.length > 0)
  assert.match(log[0] ?? '', /would outlive a kill -9 of the gateway/)
})

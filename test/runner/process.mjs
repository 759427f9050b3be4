// Processes of the test run: each in a group of its own, which ends with it.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'

/** The variable by which processes are found that have left their group. That of a process begins with that of the run around it. */
const mark = 'TOOL_HUB_TEST_PROCESS'
const running = new Set()

/** Ends all processes of a group, and (on Linux) those that left it but kept its environment. */
function endGroup ({ pid, id }) {
  try { process.kill(-pid, 'SIGKILL') } catch {}
  if (process.platform !== 'linux') return
  for (const name of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try { if (readFileSync(`/proc/${name}/environ`, 'latin1').includes(`${mark}=${id}`)) process.kill(Number(name), 'SIGKILL') } catch {}
  }
}

/** Ends whatever runs: for the end of the run itself. */
export const endAll = () => { for (const each of running) endGroup(each) }

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => { endAll(); process.exit(1) })

/**
 * Runs a command to its end; no process of its group outlives it.
 * @param options.env the variables beside those of this process
 * @param options.silence ms without any output after which it is ended; @param options.limit ms in all
 * @param options.onOutput is given what it prints to stdout, as text
 * @returns its exit code, how it ended in words where that was not by itself, and the last 64 KiB of stderr
 */
export async function runProcess (command, args, { cwd, env = {}, silence = 180_000, limit = Infinity, onOutput = () => {} }) {
  const { [mark]: around } = process.env
  const id = around === undefined ? randomUUID() : `${around}/${randomUUID()}`
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env, [mark]: id }, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const group = { pid: child.pid, id }
  running.add(group)
  let ended
  const end = (why) => { ended ??= why; endGroup(group) }
  let quiet
  const heard = () => { clearTimeout(quiet); quiet = setTimeout(end, silence, `no line for ${silence / 1_000} s`) }
  heard()
  const late = limit === Infinity ? undefined : setTimeout(end, limit, `not over after ${limit / 1_000} s`)
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text) => { heard(); onOutput(text) })
  child.stderr.setEncoding('utf8').on('data', (text) => { heard(); errors = (errors + text).slice(-65_536) })
  try {
    const [code, signal] = await once(child, 'exit')
    endGroup(group)
    await Promise.all([child.stdout, child.stderr].map(async (stream) => { if (!stream.closed) await once(stream, 'close') }))
    return { code, ended: ended ?? (signal === null ? undefined : `killed by ${signal}`), errors }
  } catch (error) {
    return { code: null, ended: String(error), errors }
  } finally {
    clearTimeout(quiet)
    clearTimeout(late)
    running.delete(group)
  }
}

/**
 * Runs tasks in order, so many at a time.
 * @param tasks functions without arguments; what one adds to the list is run, too
 */
export async function inSlots (slots, tasks) {
  const slot = async () => { for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) await task() }
  await Promise.all(Array.from({ length: slots }, slot))
}

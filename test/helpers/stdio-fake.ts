import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from './client.ts'
import { path, type Cleanup } from './hub.ts'

export interface Entry { pid: number, event: string, grandchild?: number, id?: unknown, params?: Json, capabilities?: Json, uri?: string }

/** A stdio fake (fakes/fault-stdio.mjs) with a log of what it saw; the log's entries so far. */
export function stdioFake (t: Cleanup, env: Record<string, string> = {}, more: Json = {}): { config: Json, log: () => Entry[] } {
  const folder = mkdtempSync(join(tmpdir(), 'tool-hub-fault-'))
  const file = join(folder, 'log')
  const log = (): Entry[] => existsSync(file)
    ? readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Entry)
    : []
  t.after(() => {
    // whatever a gateway left behind, and nothing else
    for (const pid of log().flatMap((entry) => [entry.pid, entry.grandchild ?? entry.pid])) {
      if (alive(pid) && commandOf(pid).includes(process.execPath)) try { process.kill(pid, 'SIGKILL') } catch {}
    }
    rmSync(folder, { recursive: true, force: true })
  })
  const config = {
    type: 'stdio', command: process.execPath, args: [path('test/fakes/fault-stdio.mjs')], env: { FAULT_LOG: file, ...env }, ...more
  }
  return { config, log }
}

/** The command line of a process, its parts ended by NUL. */
export const commandOf = (pid: number): string => { try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8') } catch { return '' } }

/** State and parent of a process, from /proc. */
function stat (pid: number): { state: string, parent: number } | undefined {
  try {
    const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
    return { state: state ?? '', parent: Number(parent) }
  } catch { return undefined }
}

/** Whether a process runs. A zombie counts as gone. */
export const alive = (pid: number): boolean => !['Z', 'X', undefined].includes(stat(pid)?.state)

/** All processes whose command line begins with this. */
export const processesOf = (command: string): number[] =>
  readdirSync('/proc').map(Number).filter((pid) => pid > 0 && commandOf(pid).startsWith(command))

/** Every process below this one. */
export function descendants (pid: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
  const parents = new Map(pids.map((each) => [each, stat(each)?.parent]))
  const found: number[] = []
  const walk = (parent: number): void => {
    for (const [child, its] of parents) if (its === parent) { found.push(child); walk(child) }
  }
  walk(pid)
  return found
}

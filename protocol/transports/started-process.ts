import { spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { mayStart, noteStart } from './process-start.ts'

/** A process to be started. It leads a process group and a session of its own. */
export interface ProcessOrder {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd?: string | undefined
  /** The user and group that it runs as; needs root. */
  readonly uid?: number | undefined
  readonly gid?: number | undefined
  /** Its whole environment, which tells where its command is, too (`PATH`). */
  readonly env: Readonly<Record<string, string>>
}

/** How a process ended: with a code, or by a signal; neither: that is not known. */
export interface ProcessExit { readonly code: number | null, readonly signal: NodeJS.Signals | null }

/** A process that runs, or has just ended. */
export interface StartedProcess {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when it has ended. Its last output may not have been read yet. */
  readonly exited: Promise<ProcessExit>
}

/** Starts a process. @throws NodeJS.ErrnoException where there is no such command or folder, or it may not be executed */
export type StartProcess = (order: ProcessOrder) => Promise<StartedProcess>

/** Starts a process as a child of this one. While the system copies this process, it does nothing else. */
export const startChild: StartProcess = async ({ command, args, cwd, uid, gid, env }) => {
  await mayStart()
  const begun = performance.now()
  const child = spawn(command, args, {
    cwd, uid, gid, env, detached: true, windowsHide: true, stdio: ['pipe', 'pipe', 'pipe']
  })
  noteStart(performance.now() - begun)
  const exited = new Promise<ProcessExit>((resolve) => { child.once('exit', (code, signal) => { resolve({ code, signal }) }) })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  child.on('error', () => {})
  const { stdin, stdout, stderr } = child
  return { pid: child.pid ?? 0, stdin, stdout, stderr, exited }
}

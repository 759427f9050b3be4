import { spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** A process to start as leader of a new process group and session. */
interface ProcessSpec {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd?: string | undefined
  /** The user and group to run as; requires root. */
  readonly uid?: number | undefined
  readonly gid?: number | undefined
  /** The entire environment; its `PATH` is searched for the command. */
  readonly env: Readonly<Record<string, string>>
}

/** How a process ended: either `code` or `signal` is set; the other is null. */
export interface ProcessExit { readonly code: number | null, readonly signal: NodeJS.Signals | null }

/** A process that is running or has just ended. */
export interface StartedProcess {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the process has ended; its last output may still be unread. */
  readonly exited: Promise<ProcessExit>
}

/** Starts a process. @throws NodeJS.ErrnoException if the command or folder does not exist, or is not accessible */
export type StartProcess = (spec: ProcessSpec) => Promise<StartedProcess>

/** Starts a process as a child of this one. */
export const startChild: StartProcess = async ({ command, args, cwd, uid, gid, env }) => {
  const child =
    spawn(command, args, { cwd, uid, gid, env, detached: true, windowsHide: true, stdio: ['pipe', 'pipe', 'pipe'] })
  const exited =
    new Promise<ProcessExit>((resolve) => { child.once('exit', (code, signal) => { resolve({ code, signal }) }) })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  child.on('error', () => {})
  const { stdin, stdout, stderr } = child
  return { pid: child.pid ?? 0, stdin, stdout, stderr, exited }
}

/** Describes why a command cannot be started, and what to do. */
export function startFailureMessage (command: string, cwd: string | undefined, error: NodeJS.ErrnoException): string {
  const failure = `cannot start ${JSON.stringify(command)}`
  switch (error.code) {
    case 'ENOENT': {
      const orFolder = cwd === undefined ? '' : `, or no folder ${JSON.stringify(cwd)}`
      // The path of a program may contain spaces.
      const hasArguments = /^[^\s/]+\s+\S|\s-/.test(command)
      return hasArguments
        ? `${failure}: no such command${orFolder}. "command" must be the program only: put its arguments into "args"`
        : `${failure}: no such command${orFolder}; is it installed and on the PATH?`
    }
    case 'EACCES': return `${failure}: it is not executable`
    case 'EMFILE':
      return `${failure}: the gateway has reached its limit of open files: raise it (ulimit -n, LimitNOFILE)`
    case 'ERR_INVALID_ARG_VALUE':
      return `${failure}: "command", "args", "env" or "cwd" contains a NUL character: remove it`
    default: return `${failure}: ${error.code ?? error.message}`
  }
}

export interface ProcessUser {
  readonly uid: number, readonly gid: number, readonly home: string, readonly name: string
}

export interface ChildCommand {
  readonly command: string
  readonly args: string[]
  /** The entire environment. */
  readonly env: Record<string, string>
  readonly cwd?: string
  /** The user to run as, instead of this process's user; requires root. */
  readonly user?: ProcessUser
}

/**
 * Returns the folder in which to start a command as a user. Default: the user's home, or `/`, since the user may not be
 * allowed to enter the gateway's working folder.
 * @returns an Error if the user cannot enter the wanted folder
 */
export async function findWorkingFolder (user: ProcessUser, wanted: string | undefined): Promise<string | Error> {
  if (wanted === undefined) return await canEnter(user.home, user) ? user.home : '/'
  if (await canEnter(wanted, user)) return wanted
  const closed = `the user ${user.name} (CHILD_USER) cannot enter the folder ${JSON.stringify(wanted)}`
  return new Error(`${closed}; set "cwd", or change the permissions of the folder`)
}

/**
 * Whether a user may enter a folder, according to the modes of the folder and its parents; true if one of them cannot
 * be examined. Starting a process does not check this, since the process changes its folder before its user.
 */
export async function canEnter (folder: string, { uid, gid }: ProcessUser): Promise<boolean> {
  if (uid === 0) return true
  for (let at = resolve(folder); ; at = dirname(at)) {
    const stats = await stat(at).catch(() => undefined)
    if (!stats) return true
    const bit = stats.uid === uid ? 0o100 : stats.gid === gid ? 0o010 : 0o001
    if ((stats.mode & bit) === 0) return false
    if (at === dirname(at)) return true
  }
}

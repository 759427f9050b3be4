import { readFileSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeFolder } from '../../../db/folder.ts'
import { findProcess, isRunning, type ProcessIdentity } from '../../../protocol/transports/process-table.ts'
import { ProcessTree } from '../../../protocol/transports/process-tree.ts'
import { startChild, type StartedProcess, type StartProcess } from '../../../protocol/transports/started-process.ts'

/** Time between SIGTERM and SIGKILL for processes of a gateway that no longer runs, in ms. */
const killGrace = 2_000
/** How long an entry is kept after its process has ended, in ms, so that its own child processes can be ended first. */
const entryLinger = 10_000

type Log = (level: 'info' | 'warn', sentence: string) => void

/**
 * Starts the processes of stdio servers, and records them on disk, so that the next gateway can end those that survive
 * a `kill -9` of this gateway. Each process has a file as its entry. The file's name contains the gateway's process id
 * and start time, and the value of `TOOL_HUB_CHILD` in the environment of the process; the file contains the process id
 * and start time of the process. A left-over process is ended if its id and start time, or its `TOOL_HUB_CHILD`, match.
 */
export class ChildProcessManager {
  readonly #root: string
  readonly #folder: string
  readonly #gateway = findProcess(process.pid)
  readonly #log: Log
  #sweeping: Promise<void> = Promise.resolve()

  /** @param root the folder of the entries; it need not exist */
  constructor (root: string, log: Log) {
    this.#root = root
    this.#folder = join(root, bootId())
    this.#log = log
  }

  /**
   * Begins to end the processes of gateways that no longer run. `start` waits until they have ended, since they may
   * hold ports and files.
   */
  endOrphans (): void {
    this.#sweeping = this.#sweep().catch((error: unknown) => {
      this.#log('warn', `the record of processes in ${this.#root} cannot be read: ${String(error)}`)
    })
  }

  readonly start: StartProcess = async (order) => {
    await this.#sweeping
    const { TOOL_HUB_CHILD: mark } = order.env
    if (!this.#gateway || mark === undefined) return await startChild(order)
    const file = join(this.#folder, `${this.#gateway.pid}_${this.#gateway.started}_${mark}`)
    // The entry is created first, so that the process does not run without one.
    this.#write(file, '')
    let started: StartedProcess
    try {
      started = await startChild(order)
    } catch (error) {
      await rm(file, { force: true })
      throw error
    }
    const child = findProcess(started.pid)
    if (child) this.#write(file, `${child.pid} ${child.started}`)
    void started.exited.then(async () => {
      await sleep(entryLinger, undefined, { ref: false })
      await rm(file, { force: true })
    }).catch(() => {})
    return started
  }

  /** Removes the entries of this gateway. Must be called after all its processes have ended. */
  async close (): Promise<void> {
    // Gateways in several containers may have the same process id and share the folder, so the start time is compared.
    const own = (await this.#entries()).filter(({ gateway: { pid, started } }) =>
      pid === this.#gateway?.pid && started === this.#gateway.started)
    await Promise.all(own.map(async ({ file }) => { await rm(file, { force: true }) }))
  }

  #write (file: string, text: string): void {
    try {
      makeFolder(this.#folder, 'DATA_DIR')
      writeFileSync(file, text, { mode: 0o600 })
    } catch (error) {
      this.#log('warn', `a process is not recorded, so it would outlive a kill -9 of the gateway: ${String(error)}`)
    }
  }

  async #sweep (): Promise<void> {
    for (const boot of await readdir(this.#root).catch(() => [])) {
      // Processes of an earlier boot no longer exist.
      if (join(this.#root, boot) !== this.#folder) await rm(join(this.#root, boot), { recursive: true, force: true })
    }
    const entries = (await this.#entries()).filter(({ gateway }) => !isRunning(gateway))
    const counts = await Promise.all(entries.map(async ({ file, mark }) => {
      const count = await endOrphan(mark, await readFile(file, 'latin1').catch(() => ''))
      await rm(file, { force: true })
      return count
    }))
    const count = counts.reduce((sum, each) => sum + each, 0)
    if (count > 0) this.#log('info', `ended ${count} processes left over from an earlier gateway`)
  }

  async #entries (): Promise<Array<{ file: string, gateway: ProcessIdentity, mark: string }>> {
    const names = await readdir(this.#folder).catch(() => [])
    return names.flatMap((name) => {
      const [, pid, started, mark] = /^(\d+)_(\d+)_([\w-]+)$/.exec(name) ?? []
      if (started === undefined || mark === undefined) return []
      return [{ file: join(this.#folder, name), gateway: { pid: Number(pid), started }, mark }]
    })
  }
}

/**
 * Ends an orphaned process and the processes that it started.
 * @param mark the `TOOL_HUB_CHILD` in their environment
 * @param text the content of the entry: process id and start time; empty if the gateway died before it wrote them
 * @returns the number of processes that were ended
 */
async function endOrphan (mark: string, text: string): Promise<number> {
  const [pid, started = ''] = text.split(' ')
  const leader = { pid: Number(pid), started }
  const tree = new ProcessTree(isRunning(leader) ? leader.pid : undefined, mark)
  await tree.scan()
  if (tree.size > 0) await tree.end(Promise.resolve(), killGrace)
  return tree.size
}

/**
 * Returns the id of the current boot of the system. Start times of processes count from the boot, so an entry of an
 * earlier boot could match a current process.
 */
function bootId (): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return 'boot'
  }
}

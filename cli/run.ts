import { guardOutputs, processIo } from './io.ts'
import { runCommandLine } from './program.ts'

/** Runs the command of this process's arguments, and sets its exit code. */
export async function runProcessCommand (): Promise<void> {
  guardOutputs()
  const code = await runCommandLine(process.argv.slice(2), processIo())
  // `serve` returns 0 while the gateway runs, which sets the exit code of the process itself.
  if (code !== 0) process.exitCode = code
}

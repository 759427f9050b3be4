import { guardOutputs, processIo } from './io.ts'
import { main } from './program.ts'

/** Runs the command of this process's arguments, and sets its exit code. */
export async function run (): Promise<void> {
  guardOutputs()
  const code = await main(process.argv.slice(2), processIo())
  // `serve` returns 0 while the gateway runs, which sets the exit code of the process itself.
  if (code !== 0) process.exitCode = code
}

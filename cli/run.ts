import { handleOutputErrors, createProcessIo } from './io.ts'
import { runCommandLine } from './program.ts'

/** Runs the command that the arguments of this process name, and sets the exit code. */
export async function runCommandFromArgv (): Promise<void> {
  handleOutputErrors()
  const code = await runCommandLine(process.argv.slice(2), createProcessIo())
  // `serve` returns 0 while the gateway is still running; the gateway sets the exit code later.
  if (code !== 0) process.exitCode = code
}

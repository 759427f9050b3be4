import { handleOutputErrors, createProcessIo } from './io.ts'
import { runCommandLine } from './program.ts'

/** Runs the command in the arguments of this process, and sets the exit code of the process. */
export async function runCommandFromArgv (): Promise<void> {
  handleOutputErrors()
  const code = await runCommandLine(process.argv.slice(2), createProcessIo())
  // The command `serve` returns 0 while the gateway is still running. The gateway sets the exit code when it ends.
  if (code !== 0) process.exitCode = code
}

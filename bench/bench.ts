import type { Processes } from './processes.ts'

/** The resources of a measurement. */
export interface Bench {
  processes: Processes
  /** A temporary folder, removed at the end. */
  folder: string
  /** Fewer rounds and calls. */
  quick: boolean
  /** Prints a line of progress. */
  log: (progress: string) => void
}

export interface Measurement {
  title: string
  /** Resolves with the Markdown below the title. Processes that it leaves running are stopped after it. */
  run: (bench: Bench) => Promise<string>
}

import type { Processes } from './processes.ts'

/** What every measurement is given. */
export interface Bench {
  processes: Processes
  /** A temporary folder, removed at the end. */
  folder: string
  /** Fewer rounds and calls. */
  quick: boolean
  /** A line of progress. */
  say: (progress: string) => void
}

/** A measurement: its heading, and a function that answers the Markdown under it. Processes it starts and does not stop are ended after it. */
export interface Measurement { title: string, run: (bench: Bench) => Promise<string> }

import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/** With fewer cores, the threads that help to collect garbage wait for one another, and the main thread for them. */
const enough = 4

/**
 * Collects young garbage on the main thread alone where cores are few. With helpers, each pause lasts until the system has given all of
 * them a core, which other processes use: large bodies held the event loop a quarter longer (docs/withstands.md). Calls cost the same.
 */
export function fitCollector (cores = availableParallelism()): void {
  if (cores < enough) setFlagsFromString('--no-parallel-scavenge')
}

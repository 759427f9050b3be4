// Which test files there are, and how they are put into batches.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
/** Folders that `npm test` leaves out: real databases, browsers and whole processes; and what takes minutes, or a machine of its own. */
const apart = ['integration', 'system', 'nightly', 'measure', 'soak']

/** The test files of a kind: `unit` (what `npm test` runs), or one of the folders apart. */
export function filesOf (kind) {
  const ending = kind === 'soak' ? '.ts' : '.test.ts'
  return readdirSync(root, { recursive: true }).map(String)
    .filter((name) => name.endsWith(ending))
    .filter((name) => kind === 'unit' ? !apart.includes(name.split('/')[0]) : name.startsWith(`${kind}/`))
    .map((name) => `test/${name}`)
    .sort()
}

/** Seconds that each file took when they were recorded (`npm test -- --record`). */
export const durationsFile = `${root}durations.json`
const durations = JSON.parse(readFileSync(durationsFile, 'utf8'))
export const durationOf = (file) => durations[file] ?? 5

const sourceOf = (file) => readFileSync(new URL(file, new URL('../../', import.meta.url)), 'utf8')
/** Whether a file says that it shares its process with no other: it reads the heap, mocks Date, or changes limits. */
const isAlone = (file) => /^\/\/ own process: /m.test(sourceOf(file))

/**
 * Puts files into batches, each for one process; those that take long come first.
 * @param count how many batches at most, beside files with a process of their own
 */
export function batchesOf (files, count) {
  const alone = files.filter(isAlone).map((file) => [file])
  const shared = files.filter((file) => !isAlone(file)).sort((a, b) => durationOf(b) - durationOf(a))
  const batches = Array.from({ length: Math.min(count, shared.length) }, () => [])
  const time = (batch) => batch.reduce((sum, file) => sum + 0.1 + durationOf(file), 0)
  for (const file of shared) batches.sort((a, b) => time(a) - time(b))[0]?.push(file)
  return [...batches, ...alone].sort((a, b) => time(b) - time(a))
}

// How a run ends: its closing lines, and whether it failed.
import { indented } from './report.mjs'

/** More flaky files than this fail a run, and so does a flaky test that has been listed in test/flaky.json for longer than this. */
const maxFlaky = 3
const maxListedDays = 14
const days = (ms) => ms / 86_400_000
const nameOf = ({ file, path }) => [file, path].filter(Boolean).join(' › ')

/**
 * @param run.results how each file ended, as `tapReader` gives it; of one that ran twice, the second time
 * @param run.flaky `{file, path, first}` of each file that failed, and passed when it ran again: the first test that failed, and how
 * @param run.listed the entries of test/flaky.json: `{test, cause, date}`
 * @param run.steps whether each other command ended well, by its name
 * @returns the lines to print, the last `N passed, N failed`, and whether all is well
 */
export function verdict ({ results, flaky, listed, steps, now = Date.now() }) {
  const sum = (key) => results.reduce((total, result) => total + result[key], 0)
  const failures = results.filter(({ ok }) => !ok).flatMap(({ file, failures }) => failures.map((failure) => ({ file, ...failure })))
  const stale = flaky.filter((each) => listed.some(({ test, date }) => test === nameOf(each) && days(now - Date.parse(date)) > maxListedDays))
  const badSteps = [...steps.values()].filter((ok) => !ok).length
  const tooMany = flaky.length > maxFlaky ? [`✖ ${flaky.length} flaky files, at most ${maxFlaky} are allowed`] : []
  const passed = sum('passed') + steps.size - badSteps
  const failed = sum('failed') + badSteps + tooMany.length + stale.length
  return {
    lines: [
      ...failures.length > 0 ? ['', 'What failed:'] : [],
      ...failures.map((failure) => `✖ ${nameOf(failure)}\n${indented(failure.what, 2)}`),
      ...flaky.map((each) => `FLAKY ${nameOf(each)}, ${each.first}`),
      ...tooMany,
      ...stale.map((each) => `✖ listed in test/flaky.json for more than ${maxListedDays} days: ${nameOf(each)}`),
      `${results.length} files, ${flaky.length} flaky, ${sum('skipped')} tests skipped`,
      `${passed} passed, ${failed} failed`
    ],
    ok: failed === 0 && passed > 0
  }
}

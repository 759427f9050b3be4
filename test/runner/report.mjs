// What test files report in TAP, read and told.
import { inspect } from 'node:util'
import { Parser } from 'tap-parser'
import { stringify } from 'yaml'

export const indented = (text, by) => text.trimEnd().replace(/^(?=.)/gm, ' '.repeat(by))
export const seconds = (ms) => `${((ms ?? 0) / 1_000).toFixed(2)} s`

/** A diagnosis as text, whatever it holds: functions and circles too. */
export function told (diagnosis) {
  const plain = (key, value) => typeof value === 'function' || typeof value === 'bigint' || typeof value === 'symbol' ? String(value) : value
  try { return stringify(JSON.parse(JSON.stringify(diagnosis, plain))) } catch { return inspect(diagnosis, { depth: 6 }) }
}

/**
 * Reads the TAP of a batch: a subtest a file, with tests and subtests in it.
 * @param onFile is called as each file ends with `{file, ok, ms, passed, failed, skipped, lines, failures: [{path, what, first}]}`: the
 *   numbers are those of its tests with their subtests, `lines` what a person may read of them
 * @returns `write` for what the batch prints, and `end`, to be called after its exit
 */
export function tapReader (onFile) {
  const parser = new Parser()
  parser.on('child', (child) => {
    const file = { file: child.name, ok: false, ms: 0, passed: 0, failed: 0, skipped: 0, lines: [], failures: [] }
    follow(child, file, 1, [])
    parser.once('assert', ({ ok, time, diag }) => {
      if (!ok && file.failed === 0) {
        // The file itself failed: an exception outside of any test.
        file.failed++
        if (file.failures.length === 0) file.failures.push({ path: '', what: told(diag), first: 'it ended with an error' })
      }
      onFile({ ...file, ok, ms: time })
    })
  })
  return { write: (text) => { parser.write(text) }, end: () => { parser.removeAllListeners(); parser.end() } }
}

/** Counts and notes the tests of a file. @param path the names of the tests around */
function follow (parser, file, depth, path) {
  let isTest = false
  parser.on('child', (child) => {
    isTest = true
    follow(child, file, depth + 1, [...path, child.name])
  })
  parser.on('comment', (comment) => {
    if (!/^# (Subtest: |time=)/.test(comment)) file.lines.push(indented(comment, 2 * depth))
  })
  parser.on('assert', ({ ok, name, time, skip, diag }) => {
    if (skip) {
      file.skipped++
      file.lines.push(indented(`- ${name} (skipped: ${skip})`, 2 * depth))
    } else if (isTest) {
      ok ? file.passed++ : file.failed++
      file.lines.push(indented(`${ok ? '✔' : '✖'} ${name} (${seconds(time)})`, 2 * depth))
    }
    // A point that is no test says what is wrong with the test around it: an exception, mostly.
    if (!ok && !isTest) {
      const what = told(diag ?? {})
      file.lines.push(indented(`${name}\n${indented(what, 2)}`, 2 * depth))
      file.failures.push({ path: path.join(' › '), what: `${name}\n${indented(what, 2)}`, first: name.split('\n')[0] })
    }
    isTest = false
  })
}

// Runs test files with tap, each in a process of its own, and prints what they report as TAP:
// `node test/suite.mjs --jobs=3 --timeout=300 --node-arg=… files…`, with the timeout of a file in seconds.
import { parseArgs } from 'node:util'
import { t } from 'tap'

const { values: { jobs, timeout, 'node-arg': nodeArgs }, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '1' },
    timeout: { type: 'string', default: '300' },
    'node-arg': { type: 'string', multiple: true, default: [] }
  }
})

/**
 * tap follows what each process loads, and its children, by NODE_OPTIONS: for its coverage, which is not used here. That takes a second of
 * CPU time for each file, and children would not get exactly the environment that they are given, which tests look at.
 */
const unfollowed = ['env', '-u', 'NODE_OPTIONS']

t.setTimeout(0)
t.jobs = Number(jobs)
t.plan(files.length)
for (const file of files) {
  const [command, ...args] = [...unfollowed, process.execPath, ...nodeArgs, file]
  t.spawn(command, args, {
    at: null,
    stack: '',
    name: file,
    buffered: t.jobs > 1,
    timeout: Number(timeout) * 1_000,
    env: { ...process.env, TAP_TIMEOUT: timeout }
  })
}

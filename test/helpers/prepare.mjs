// Loaded before each test file.
import './cheap-hashes.mjs'
import { createRequire, syncBuiltinESMExports } from 'node:module'

// What Node measures coverage by, it hands on to children by itself: a gateway must not be the slower for being tested.
delete process.env.NODE_V8_COVERAGE
// tap follows every promise, to tell which test an error belongs to that nobody caught. That took a fifth of each test's time; without it,
// such an error ends the file, which fails.
const hooks = createRequire(import.meta.url)('node:async_hooks')
const none = { enable: () => none, disable: () => none }
hooks.createHook = () => none
syncBuiltinESMExports()

// A file that is run by itself ends with its last test: what it started for all of them (`t.after`) would keep the process.
if (/\.test\.ts$/.test(process.argv[1] ?? '')) (await import('tap')).t.teardown(() => {})

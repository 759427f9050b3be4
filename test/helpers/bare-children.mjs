// Loaded before each test file. tap follows child processes by NODE_OPTIONS and variables of its own, which it adds to each environment.
// Here children get exactly the environment that they are given: tests look at it, and a gateway must not start the slower for being
// tested.
import { createRequire, syncBuiltinESMExports } from 'node:module'

const resolve = (name, from) => createRequire(from).resolve(name)
const processInfo = ['@tapjs/core', '@tapjs/processinfo'].reduce((from, name) => resolve(name, from), resolve('tap', import.meta.url))
createRequire(processInfo)('process-on-spawn').removeAllListeners()
delete process.env.NODE_OPTIONS
// So is what Node measures coverage by, and hands on to children by itself.
delete process.env.NODE_V8_COVERAGE
// tap follows every promise, to tell which test an error belongs to that nobody caught. That took a fifth of each test's time; without it,
// such an error ends the file, which fails.
const hooks = createRequire(import.meta.url)('node:async_hooks')
const none = { enable: () => none, disable: () => none }
hooks.createHook = () => none
syncBuiltinESMExports()

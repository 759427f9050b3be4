// Loaded into a gateway process (`NODE_OPTIONS`) whose exit code a test asks for: the time after which it gives up ending in order, and exits
// with code 1, is 20 times as long. Children that end slowly are no failure of a slow machine.
import { promisify } from 'node:util'

const { setTimeout: plain } = globalThis
const { [promisify.custom]: promised } = plain
const patient = (ms) => ms === 9_500 ? 20 * ms : ms
globalThis.setTimeout = Object.assign((run, ms, ...args) => plain(run, patient(ms), ...args), {
  [promisify.custom]: async (ms, ...args) => await promised(patient(ms), ...args)
})

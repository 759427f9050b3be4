// 100,000 hostile bodies over all routes: the property of test/identity/auth/access.test.ts, in rounds of 5,000 with a gateway and a seed
// of their own.
// SEED=<the seed of a round> HOSTILE_BODIES=5000 TAP_GREP='hostile bodies' node --import tsx test/identity/auth/access.test.ts
// runs one again.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { path } from '../helpers/hub.ts'

const bodies = Number(process.env.HOSTILE_BODIES ?? 100_000)
const aRound = 5_000
const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)

test(`${bodies} hostile bodies over all routes`, async (t) => {
  for (let round = 0; round * aRound < bodies; round++) {
    const count = Math.min(aRound, bodies - round * aRound)
    t.comment(`seed ${seed + round}, ${count} bodies`)
    // In a process that does not know of the runner around it, or it would report to that.
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))
    const child = spawn(process.execPath, ['--import', 'tsx', path('test/identity/auth/access.test.ts')], {
      env: { ...environment, TAP_GREP: 'hostile bodies', TAP_TIMEOUT: '3600', HOSTILE_BODIES: String(count), SEED: String(seed + round) },
      stdio: ['ignore', 'pipe', 'inherit']
    })
    t.after(() => { child.kill('SIGKILL') })
    let output = ''
    child.stdout.on('data', (chunk) => { output += String(chunk) })
    const [exit] = await once(child, 'close') as [number | null]
    assert.equal(exit, 0, `seed ${seed + round}: ${output.slice(-20_000)}`)
    assert.match(output, new RegExp(`seed ${seed + round}, ${count} bodies`), 'the property did not run')
  }
})

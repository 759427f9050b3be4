import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { bearerKey } from '../test/helpers/hub.ts'
import { measurePair, runPaired, type PairedSettings, type PairOptions } from './paired.ts'
import type { Spread } from './statistics.ts'

/** Max cost of a call with 10,000 stored keys, relative to a call with one. */
export const keysBound = 1.15
const many = 10_000

/** CPU time of a `tools/call` with 10,000 stored keys, relative to one with one key. The key in use is the last one stored. */
export const measureKeys = async (options: PairOptions): Promise<Spread> =>
  (await measurePair(options, [withKeys(1), withKeys(many)])).ratio

const tokenOf = (n: number): string => `thk_${createHash('sha256').update(String(n)).digest('hex')}`

function withKeys (count: number): PairedSettings {
  return { settings: { bearerKeys: Array.from({ length: count }, (_, n) => key(n, tokenOf(n))) }, token: tokenOf(count - 1) }
}

/** The nth key as a gateway stores it, by its hash. */
function key (n: number, token: string): object {
  const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
  return {
    ...bearerKey({ id, name: `key ${n}`, token: undefined }),
    tokenHash: createHash('sha256').update(token).digest('hex'),
    tokenMask: 'thk_....',
    allowedGroups: [],
    allowedServers: []
  }
}

async function main (options: PairOptions): Promise<void> {
  const { median, min, max } = await measureKeys(options)
  process.stdout.write(
    `CPU of a call with ${many} keys, relative to one key: ${median.toFixed(3)} (${min.toFixed(3)}–${max.toFixed(3)}); ` +
      `at most ${keysBound}\n`
  )
  if (median > keysBound) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runPaired(main)

import { fileURLToPath } from 'node:url'
import { bearerKey } from '../test/helpers/hub.ts'
import { measurePair, runPaired, type Pair, type PairOptions } from './paired.ts'

/** Max cost of a call with ten policies, relative to a call without any. */
export const policiesBound = 1.1

/** Conditions over all that policies know of a call. None is true for the call that is measured, so that all are evaluated. */
const conditions = [
  'tool.server == "tickets" && tool.name == "delete"',
  'tool.name.startsWith("drop_") || tool.name.endsWith("_all")',
  '"dangerous" in tool.tags',
  'tool.annotations.readOnlyHint == true && tool.kind == "prompt"',
  '!principal.isAdmin && "writers" in principal.teams',
  'principal.username in ["ada", "bob", "cleo"]',
  'principal.key.name == "ci" && route == "/mcp/$smart"',
  'has(args.path) && args.path.matches("^/(etc|root)/")',
  'has(args.limit) && args.limit > 1000',
  'size(args) > 20'
]

/** CPU time of an echo call without rules, and with ten policies. */
export async function measurePolicies (options: PairOptions): Promise<Pair> {
  const { token } = bearerKey()
  const policies = conditions.map((when, n) => ({ id: `p${n}`, name: `Rule ${n}`, when, then: n < 3 ? 'hide' : 'deny' }))
  return await measurePair(options, [
    { settings: { bearerKeys: [bearerKey()] }, token }, { settings: { bearerKeys: [bearerKey()], policies }, token }
  ])
}

async function main (options: PairOptions): Promise<void> {
  const { ratio, first, second } = await measurePolicies(options)
  process.stdout.write(
    `CPU of an echo call: ${first.median.toFixed(4)} ms without rules, ${second.median.toFixed(4)} ms with ten policies: ` +
      `${ratio.median.toFixed(3)} times (${ratio.min.toFixed(3)}–${ratio.max.toFixed(3)}); at most ${policiesBound}\n`
  )
  if (ratio.median > policiesBound) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runPaired(main)

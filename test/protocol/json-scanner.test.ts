// Checking JSON text without making values of it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { elementsOf, membersOf } from '../../protocol/json.ts'
import { scanJson, JsonTooDeep } from '../../protocol/json-scanner.ts'

/** @returns undefined where the text is not JSON */
function attempt<Result> (run: () => Result): Result | undefined {
  try {
    return run()
  } catch (error) {
    assert.ok(error instanceof SyntaxError)
    return undefined
  }
}

test('a scan accepts what JSON.parse accepts, and finds the same members', async () => {
  const parts = [
    '{', '}', '[', ']', ',', ':', '"a"', '"\\u00e9"', '"\\x"', '"', '1', '-', '0', '01', '1.5e3', '1e', 'true', 'nul', 'null', ' ', '\n',
    '\t', '\\', 'é', '"\u0001"', '""', '\ufeff', '\u00a0'
  ]
  let seed = 1
  const random = (below: number): number => (seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff) % below
  let valid = 0
  for (let n = 0; n < 30_000; n++) {
    const inner = Array.from({ length: 1 + random(9) }, () => parts[random(parts.length)] ?? '').join('')
    const text = [`{"k":${inner}}`, `[${inner}]`, inner][n % 3] ?? ''
    let isValid = true
    try { JSON.parse(text) } catch { isValid = false }
    const scan = attempt(() => scanJson(text, { maxDepth: 50, isWanted: () => true, maxElements: 100 }))
    assert.equal(scan !== undefined, isValid, JSON.stringify(text))
    if (!scan) continue
    valid++
    if (scan.kind === 'object') assert.deepEqual(scan.members, membersOf(text), text)
    else assert.deepEqual(scan.members.map(({ start, end }) => text.slice(start, end)), elementsOf(text), text)
  }
  assert.ok(valid > 500, 'the texts are hardly ever valid')
  assert.throws(() => scanJson('[[[]]]', { maxDepth: 2 }), JsonTooDeep)
  const { values, largestObject: mostMembers, size, hasNullOrEmptyArray } = scanJson('[{"a":1,"b":[]},{"c":[2,3,4,5]},6]', { maxDepth: 3 })
  assert.deepEqual([values, mostMembers, size, hasNullOrEmptyArray], [11, 2, 3, true])
  assert.deepEqual([scanJson('[]', { maxDepth: 1 }).size, scanJson('{}', { maxDepth: 1 }).size, scanJson(' [1] ', { maxDepth: 1 }).size], [0, 0, 1])
})

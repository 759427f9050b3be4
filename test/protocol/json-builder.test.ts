import assert from 'node:assert/strict'
import { test } from 'tap'
import { JsonBuilder } from '../../protocol/json-builder.ts'

const built = (text: string): { value: unknown, steps: number } => {
  const builder = new JsonBuilder(text)
  let steps = 1
  while (!builder.step()) steps++
  return { value: builder.value, steps }
}

const many = (length: number, each: (n: number) => string): string => Array.from({ length }, (_, n) => each(n)).join(',')
const long = (length: number): string => JSON.stringify('x,[{"\\'.repeat(length / 6))

const texts: Record<string, string> = {
  'a number': ' 1e3 ',
  'a text of 300,000 characters': long(300_000),
  'an empty object': '{}',
  'small members': '{"a":[1,{"b":null}],"a":[2],"":true}',
  'many members': `{ ${many(40_000, (n) => `"k${n}" : ${n}`)} }`,
  'names that are numbers, and repeated names': `{"b":1,${many(9_000, (n) => `"${9_000 - n}":${n},"b":${n},"${n}":0`)}}`,
  'names that objects inherit': `{"__proto__":{"a":1},${many(5_000, (n) => `"n${n}":0`)},"__proto__":[${many(9_000, String)}],"constructor":1}`,
  'empty arrays': `[${many(200_000, () => '[]')}]`,
  'large members of large members': `{"a":{"b":[${many(4, () => `{"x":[${many(9_000, String)}],"y":${long(20_000)}}`)}],"c":{}},"d":[ ]}`,
  'large members one behind the other': `[[${many(9_000, String)}] , [${many(9_000, String)}],1,[],[${many(9_000, String)}]]`,
  'a large member behind a long text': `{"t":${long(40_000)},"l":{${many(9_000, (n) => `"n${n}":"\\"${n}"`)}} , "e":-0}`,
  'a large member deep within small ones': `${'[{"a":'.repeat(90)}[${many(9_000, String)}]${'}]'.repeat(90)}`,
  'white space': `[${' '.repeat(300_000)}1${'\n'.repeat(300_000)},\t${' '.repeat(20_000)}[ ]${' '.repeat(20_000)}]`
}

for (const [name, text] of Object.entries(texts)) {
  test(`${name}: as JSON.parse makes it`, async () => {
    const { value } = built(text)
    assert.deepEqual(value, JSON.parse(text))
    // The order of members, too.
    assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)))
  })
}

test('random values are as JSON.parse makes them', async (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e9)
  t.comment(`SEED=${seed}`)
  let state = seed
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  const names = ['a', '__proto__', '7', '0', 'x"y', ',', '}', 'long'.repeat(40)]
  const space = (): string => [' ', '', '', '\n '][random(4)] ?? ''
  const make = (depth: number): string => {
    const kind = random(depth > 6 ? 3 : 6)
    if (kind === 0) return ['1', '-0.5e3', 'true', 'null', '""'][random(5)] ?? ''
    if (kind === 1) return JSON.stringify(['\\', '"', ',}', '[', 'ü\u0000'][random(5)]?.repeat(random(40)))
    if (kind === 2) return JSON.stringify('y'.repeat(random(depth < 3 ? 20_000 : 50)))
    const length = random(depth < 2 ? 60 : 9)
    const each = (): string => `${space()}${kind === 3 ? '' : `${JSON.stringify(names[random(names.length)])}${space()}:`}${make(depth + 1)}${space()}`
    const members = Array.from({ length }, each).join(',')
    return kind === 3 ? `[${members}${space()}]` : `{${members}${space()}}`
  }
  for (let n = 0; n < 10; n++) {
    const text = `[${make(0)},${make(0)},${make(0)}]`
    assert.equal(JSON.stringify(built(text).value), JSON.stringify(JSON.parse(text)))
  }
})

test('a large text takes many steps', async () => {
  const { steps } = built(`{${many(40_000, (n) => `"k${n}":${n}`)}}`)
  assert.ok(steps > 5, `${steps} steps`)
})

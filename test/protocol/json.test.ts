// JSON text that is read and changed in place.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import {
  elementsOf, isDeeperThan, isObject, memberOf, membersOf, toOneLine, appendMember, withMembers
} from '../../protocol/json.ts'
import { describeJsonAmbiguity, withoutAnyDuplicates } from '../../protocol/json-ambiguity.ts'
import { parseJsonText } from '../../protocol/parse-json-text.ts'
import { arrayText, holds, jsonText, objectOf, objectText, padded } from '../helpers/json-texts.ts'

test('json: membersOf finds every member: key decoded, value to the byte', async () => {
  holds(fc.property(padded(objectText), ({ text, members = [] }) => {
    const found = membersOf(text)
    assert.deepEqual(found.map(({ key, start, end }) => [key, text.slice(start, end)]), members.map(({ key, value }) => [key, value]))
    members.forEach(({ keyText }, at) => { assert.ok(text.startsWith(keyText, found[at]?.keyStart), `${keyText} begins elsewhere`) })
  }))
})

test('json: memberOf gives what JSON.parse would see: the last of two, and nothing inherited', async () => {
  holds(fc.property(padded(objectText), ({ text, members = [] }) => {
    for (const key of new Set([...members.map((each) => each.key), 'a', '__proto__', 'constructor', 'absent'])) {
      assert.equal(memberOf(text, key), members.findLast((each) => each.key === key)?.value)
    }
  }))
})

test('json: withoutAnyDuplicates leaves what JSON.parse would see, and each member once', async () => {
  holds(fc.property(padded(objectText), ({ text }) => {
    const single = withoutAnyDuplicates(text)
    assert.deepEqual(parseJsonText(single), parseJsonText(text))
    assert.doesNotMatch(describeJsonAmbiguity(single) ?? '', /twice/)
    assert.equal(withoutAnyDuplicates(single), single)
  }))
  for (const [text, single] of [
    ['{"a":1.0, "b":[{"c":1,"c":2},"c"],"a":{"c":1}}', '{"b":[{"c":2},"c"],"a":{"c":1}}'],
    ['{"a":{"b":1,"b":2},"c":1e400 ,"\\u0061":3,"a" : 4 }', '{"c":1e400 ,"a" : 4 }'],
    ['{"n":1.0,"m":9007199254740993}', '{"n":1.0,"m":9007199254740993}']
  ] as const) assert.equal(withoutAnyDuplicates(text), single)
  const own = '{"own":{"a":1,"a":2},"name":{"a":1,"a":2},"own":{"a":1,"a":2}}'
  assert.equal(withoutAnyDuplicates(own, (name) => name === 'name'), '{"name":{"a":2},"own":{"a":1,"a":2}}')
})

test('json: elementsOf gives every element to the byte', async () => {
  holds(fc.property(padded(arrayText), ({ text, elements = [] }) => { assert.deepEqual(elementsOf(text), elements) }))
})

test('json: what is no object has no members, what is no array no elements', async () => {
  for (const text of ['null', '1', '"{"', 'true', ' "[1]" ']) {
    assert.deepEqual(membersOf(text), [])
    assert.deepEqual(elementsOf(text), [])
    assert.equal(memberOf(text, 'a'), undefined)
  }
  assert.deepEqual(membersOf('[{"a":1}]'), [])
  assert.deepEqual(elementsOf('{"a":[1]}'), [])
})

const changes = fc.array(
  fc.tuple(
    fc.constantFrom<string[]>('a', 'name', '_meta', '__proto__', 'constructor', '', '"', 'new'),
    fc.option(jsonText.map(({ text }) => text), { nil: undefined })
  ),
  { maxLength: 4 }
)
  .map((list) => new Map(list))

test(
  'json: withMembers changes exactly the named members, keeps the text of all others, and leaves a changed key standing once',
  async () => {
    holds(
      fc.property(padded(objectText), changes, ({ text, members = [] }, wanted) => {
        const out = withMembers(text, Object.fromEntries(wanted))
        const left = new Map(wanted)
        const expected: Array<[string, string]> = []
        for (const { key, value } of members) {
          if (!wanted.has(key)) {
            expected.push([key, value])
            continue
          }
          const fresh = left.get(key)
          left.delete(key)
          if (fresh !== undefined) expected.push([key, fresh])
        }
        for (const [key, fresh] of left) if (fresh !== undefined) expected.push([key, fresh])
        // As a value, as JSON.parse sees it …
        assert.deepEqual(parseJsonText(out), objectOf(expected))
        // … and as text: every member, in place, to the byte.
        const byKey = (list: Array<[string, string]>): Array<[string, string]> =>
          list.filter(([key]) => members.some((each) => each.key === key))
        assert.deepEqual(byKey(membersOf(out).map(({ key, start, end }) => [key, out.slice(start, end)])), byKey(expected))
        for (const { key, keyText } of members) if (!wanted.has(key)) assert.ok(out.includes(keyText), `${keyText} is respelt`)
        for (const [key, fresh] of wanted) {
          assert.equal(
            membersOf(out).filter((each) => each.key === key).length, fresh === undefined ? 0 : 1,
            `${key} does not stand once`
          )
        }
      }),
      1_000
    )
  }
)

test('json: withLast adds a member at the end, and keeps every byte before it', async () => {
  holds(fc.property(padded(objectText), jsonText, ({ text, members = [] }, { text: value }) => {
    const out = appendMember(text, 'the last one', value)
    assert.deepEqual(parseJsonText(out), objectOf([...members.map(({ key, value }): [string, string] => [key, value]), ['the last one', value]]))
    assert.ok(out.startsWith(text.slice(0, text.lastIndexOf('}'))))
  }))
  for (const [text, out] of [['{}', '{"a":1}'], [' { \n} ', ' { \n"a":1}'], ['{"b":{}}', '{"b":{},"a":1}']] as const) {
    assert.equal(appendMember(text, 'a', '1'), out)
  }
})

test('json: a table of the odd ones', async () => {
  const table: Array<[string, Record<string, string | undefined>, string]> = [
    ['{}', {}, '{}'],
    ['{}', { a: '1' }, '{"a":1}'],
    ['{ "a" : 1 , "b" : 2 }', { a: '3' }, '{"a" : 3,"b" : 2}'],
    ['{"a":1,"b":2}', { a: undefined }, '{"b":2}'],
    ['{"a":1}', { b: undefined }, '{"a":1}'],
    ['{"a":1,"a":2,"a":3}', { a: '4' }, '{"a":4}'],
    ['{"\\u0061":1,"a":2}', { a: '4' }, '{"\\u0061":4}'],
    ['{"\\u0061":1,"a":2}', { a: undefined }, '{}'],
    ['{"n":12345678901234567890,"e":1e400,"a":1}', { a: '2' }, '{"n":12345678901234567890,"e":1e400,"a":2}'],
    ['{"__proto__":{"x":1},"a":1}', { a: '2' }, '{"__proto__":{"x":1},"a":2}'],
    ['{"a":1}', Object.fromEntries([['__proto__', '{}']]), '{"a":1,"__proto__":{}}'],
    ['{"s":"\\ud83d","a":"}\\""}', { s: '""' }, '{"s":"","a":"}\\""}']
  ]
  for (const [text, change, out] of table) assert.equal(withMembers(text, change), out, text)
  const defaults = { d: '""', a: '0' }
  assert.equal(withMembers('{"b":1}', { a: '1' }, defaults), '{"b":1,"a":1,"d":""}')
  assert.equal(withMembers('{"\\u0064":null,"a":2,"a":3}', {}, defaults), '{"\\u0064":null,"a":2,"a":3}')
})

test('json: isDeeperThan counts what is open at once, and not what stands in strings', async () => {
  holds(
    fc.property(padded(jsonText), fc.integer({ min: 0, max: 6 }), ({ text, depth }, limit) => {
      assert.equal(isDeeperThan(text, limit), depth > limit)
    })
  )
  for (const limit of [1, 2, 200, 1_000]) {
    for (const [open, close] of [['[', ']'], ['{"a":', '}']] as const) {
      const nested = (depth: number): string => `${open.repeat(depth - 1)}${open === '[' ? '[' : '{'}${close.repeat(depth)}`
      assert.equal(isDeeperThan(nested(limit), limit), false, `${limit} levels of ${open}`)
      assert.equal(isDeeperThan(nested(limit + 1), limit), true, `${limit + 1} levels of ${open}`)
    }
    assert.equal(isDeeperThan(`["${'[{\\"'.repeat(5_000)}"]`, limit), false)
  }
})

test('json: oneLine says the same on one line', async () => {
  holds(fc.property(padded(jsonText), ({ text }) => {
    const line = toOneLine(text)
    assert.doesNotMatch(line, /[\r\n]/)
    assert.deepEqual(parseJsonText(line), parseJsonText(text))
  }))
})

test('json: on text that is no JSON they return all the same', async () => {
  for (const text of ['{"a', '{"a"', '{"a":', '{"a":1', '[1,', '[,,]', '[}', '{"\\']) {
    membersOf(text)
    elementsOf(text)
    withMembers(text, { a: '1' })
  }
  assert.doesNotThrow(() => membersOf('{"\\x":1}'), 'a key with an escape that is none')
  holds(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '\\', 'a', 'u', '1', ' '), maxLength: 20 }),
      (text) => {
        membersOf(text)
        memberOf(text, 'a')
        elementsOf(text)
        withMembers(text, { a: '1' })
        isDeeperThan(text, 3)
        toOneLine(text)
      }
    ),
    3_000
  )
})

test('json: isObject', async () => {
  for (const value of [{}, { a: 1 }, Object.create(null)]) assert.equal(isObject(value), true)
  for (const value of [null, undefined, [], 'a', 1, true, () => {}]) assert.equal(isObject(value), false)
})

test('json: parseJsonText reads names right after texts that mislead V8 (nodejs/node#63785)', async () => {
  JSON.parse('{"of":"a","\\\\u00":0}')
  assert.deepEqual(parseJsonText('{"of":"a","\\u006eame":[{"\\u0061":1}],"__proto__":2}'), JSON.parse('{"of":"a","name":[{"a":1}],"__proto__":2}'))
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { escapeToken, parseFragment, parsePointer, resolvePointer, toPointer } from '../../plugins/json-schema/json-pointer.ts'

/** The document of RFC 6901 §5. */
const example = { foo: ['bar', 'baz'], '': 0, 'a/b': 1, 'c%d': 2, 'e^f': 3, 'g|h': 4, 'i\\j': 5, 'k"l': 6, ' ': 7, 'm~n': 8 }

test('pointers lead where RFC 6901 §5 and §6 say', () => {
  for (const [pointer, fragment, value] of [
    ['', '#', example],
    ['/foo', '#/foo', ['bar', 'baz']],
    ['/foo/0', '#/foo/0', 'bar'],
    ['/', '#/', 0],
    ['/a~1b', '#/a~1b', 1],
    ['/c%d', '#/c%25d', 2],
    ['/e^f', '#/e%5Ef', 3],
    ['/g|h', '#/g%7Ch', 4],
    ['/i\\j', '#/i%5Cj', 5],
    ['/k"l', '#/k%22l', 6],
    ['/ ', '#/%20', 7],
    ['/m~0n', '#/m~0n', 8]
  ] as const) {
    assert.deepEqual(resolvePointer(example, pointer), value, pointer)
    assert.deepEqual(parseFragment(fragment), parsePointer(pointer), fragment)
    assert.equal(toPointer(parsePointer(pointer)), pointer)
  }
})

test('tokens come back as they were', () => {
  for (const token of ['', '~', '/', '~1', '~01', '~~//', 'a/b~c', '__proto__']) {
    assert.deepEqual(parsePointer(`/${escapeToken(token)}`), [token])
    assert.deepEqual(parseFragment(`#/${encodeURIComponent(escapeToken(token))}`), [token])
  }
  assert.equal(escapeToken(3), '3')
  assert.deepEqual(parsePointer('/~01'), ['~1'])
})

test('what is not encoded properly is taken literally', () => {
  assert.deepEqual(parsePointer('/a~b/~2'), ['a~b', '~2'])
  assert.deepEqual(parseFragment('#/100%/%ff~1x'), ['100%', '%ff/x'])
})

test('a pointer that leads nowhere has no value', () => {
  for (const pointer of ['/bar', '/foo/2', '/foo/-', '/foo/00', '/foo/length', '/foo/0/x', '//x', '/constructor', '/__proto__']) {
    assert.equal(resolvePointer(example, pointer), undefined, pointer)
  }
  assert.equal(resolvePointer(undefined, '/a'), undefined)
  assert.equal(resolvePointer(JSON.parse('{"__proto__":{"a":1}}'), ['__proto__', 'a']), 1)
})

test('a text that is no pointer is refused', () => {
  assert.throws(() => parsePointer('foo'), SyntaxError)
  assert.throws(() => resolvePointer(example, 'foo'), SyntaxError)
  for (const text of ['', 'foo', '#foo', '/foo']) assert.throws(() => parseFragment(text), SyntaxError, text)
})

import assert from 'node:assert/strict'
import { Type } from '@sinclair/typebox'
import { test } from 'tap'
import { compileValidator } from '../../../plugins/base/body/validators.ts'
import { parsePointer, resolvePointer } from '../../../plugins/base/json-schema/json-pointer.ts'

/** The example of RFC 6901, 5. */
const document = { foo: ['bar', 'baz'], '': 0, 'a/b': 1, 'c%d': 2, 'e^f': 3, 'g|h': 4, 'i\\j': 5, 'k"l': 6, ' ': 7, 'm~n': 8 }

test('JSON Pointers: the examples of RFC 6901', async () => {
  const cases: Array<[string, unknown]> = [
    ['', document], ['/foo', document.foo], ['/foo/0', 'bar'], ['/', 0], ['/a~1b', 1], ['/c%d', 2], ['/e^f', 3],
    ['/g|h', 4], ['/i\\j', 5], ['/k"l', 6], ['/ ', 7], ['/m~0n', 8],
    ['#', document], ['#/foo', document.foo], ['#/foo/0', 'bar'], ['#/', 0], ['#/a~1b', 1], ['#/c%25d', 2], ['#/e%5Ef', 3],
    ['#/g%7Ch', 4], ['#/i%5Cj', 5], ['#/k%22l', 6], ['#/%20', 7], ['#/m~0n', 8]
  ]
  for (const [pointer, value] of cases) assert.deepEqual(resolvePointer(document, pointer), value, pointer)
})

test('JSON Pointers: only own properties and elements are followed', async () => {
  for (const pointer of ['foo', '#foo', '/none', '/foo/2', '/foo/-', '/foo/01', '/foo/length', '/toString', '/__proto__', '/foo/0/0']) {
    assert.equal(resolvePointer(document, pointer), undefined, pointer)
  }
})

test('JSON Pointers: tokens are escaped and unescaped', async () => {
  assert.deepEqual(parsePointer('/~01/a%20b'), ['~1', 'a%20b'])
  assert.deepEqual(parsePointer('#/~01/a%20b/%zz'), ['~1', 'a b', '%zz'])
  assert.deepEqual(parsePointer('/a~1b~0/'), ['a/b~', ''])
})

test('a query keeps the parameters that its route declares, and no others', async () => {
  const schema = Type.Object({ limit: Type.Optional(Type.Integer()) })
  const check = compileValidator({ schema, httpPart: 'querystring', method: 'GET', url: '/' })
  const query = { limit: '3', token: 'a login', _: '1' }
  assert.equal(check(query), true)
  assert.deepEqual(query, { limit: 3 })
})

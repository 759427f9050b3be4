// Progress tokens belong to one hop: each writes its own, and restores the former one on the way back.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { outgoingParams, progressTokenOf, restoreProgressToken, withoutProgressToken } from '../../protocol/progress.ts'

const read = (paramsText: string): { params: Record<string, unknown>, paramsText: string } =>
  ({ params: JSON.parse(paramsText) as Record<string, unknown>, paramsText })

test('progress tokens: what a request says, how it goes on, and how it goes on as a request of our own', async (t) => {
  const table: Array<{ says: string, given: string, token: string | undefined, outgoing: string, without: string }> = [
    { says: 'a text', given: '{"name":"x","_meta":{"progressToken":"abc"}}', token: '"abc"', outgoing: '{"name":"x","_meta":{"progressToken":42}}', without: '{"name":"x","_meta":{}}' },
    { says: 'a text that is escaped stays as it was written', given: '{"_meta":{"progressToken":"\\u0061\\n"}}', token: '"\\u0061\\n"', outgoing: '{"_meta":{"progressToken":42}}', without: '{"_meta":{}}' },
    { says: 'a number', given: '{"_meta":{"progressToken":7}}', token: '7', outgoing: '{"_meta":{"progressToken":42}}', without: '{"_meta":{}}' },
    { says: 'a number that JavaScript cannot hold', given: '{"_meta":{"progressToken":12345678901234567890}}', token: '12345678901234567890', outgoing: '{"_meta":{"progressToken":42}}', without: '{"_meta":{}}' },
    { says: '0', given: '{"_meta":{"progressToken":0}}', token: '0', outgoing: '{"_meta":{"progressToken":42}}', without: '{"_meta":{}}' },
    { says: 'the empty text', given: '{"_meta":{"progressToken":""}}', token: '""', outgoing: '{"_meta":{"progressToken":42}}', without: '{"_meta":{}}' },
    { says: 'none, and no metadata', given: '{"name":"x"}', token: undefined, outgoing: '{"name":"x"}', without: '{"name":"x"}' },
    { says: 'none', given: '{ "_meta" : {"a": 1e400} }', token: undefined, outgoing: '{ "_meta" : {"a": 1e400} }', without: '{ "_meta" : {"a": 1e400} }' },
    { says: 'metadata that is no object', given: '{"_meta":"x"}', token: undefined, outgoing: '{"_meta":"x"}', without: '{"_meta":"x"}' },
    { says: 'other metadata, to the byte', given: '{"_meta":{"x/y":{"n": 1.50},"progressToken":"t" , "big":12345678901234567890},"name":"x","arguments":{"a" : 1e400}}', token: '"t"', outgoing: '{"_meta":{"x/y":{"n": 1.50},"progressToken":42,"big":12345678901234567890},"name":"x","arguments":{"a" : 1e400}}', without: '{"_meta":{"x/y":{"n": 1.50},"big":12345678901234567890},"name":"x","arguments":{"a" : 1e400}}' },
    { says: 'twice: the last one counts, and one goes on', given: '{"_meta":{"progressToken":1,"progressToken":"2"}}', token: '"2"', outgoing: '{"_meta":{"progressToken":42}}', without: '{"_meta":{}}' },
    { says: 'metadata twice: the last one counts, and one goes on', given: '{"_meta":{"progressToken":1,"a":1},"_meta":{"progressToken":2,"b":2}}', token: '2', outgoing: '{"_meta":{"progressToken":42,"b":2}}', without: '{"_meta":{"b":2}}' }
  ]
  for (const { says, given, token, outgoing, without } of table) {
    await t.test(says, async () => {
      const request = read(given)
      assert.equal(progressTokenOf(request.params, given), token)
      assert.equal(outgoingParams(request, {}, 42), outgoing)
      assert.equal(withoutProgressToken(given), without)
    })
  }

  await t.test('other members are changed on the way, with a token and without one', async () => {
    const changes = { name: '"own"' }
    assert.equal(
      outgoingParams(read('{"name":"s-own","_meta":{"progressToken":"a"}}'), changes, 1),
      '{"name":"own","_meta":{"progressToken":1}}'
    )
    assert.equal(outgoingParams(read('{"name":"s-own","arguments":{"n":1e400}}'), changes, 1), '{"name":"own","arguments":{"n":1e400}}')
  })

  await t.test('on the way back only the token changes', async () => {
    assert.equal(
      restoreProgressToken('{ "progress" : 0.50, "progressToken":42,"total":1e400,"message":"é" }', '"mine"'),
      '{"progress" : 0.50,"progressToken":"mine","total":1e400,"message":"é"}'
    )
    assert.equal(restoreProgressToken('{"progressToken":42,"progressToken":42,"progress":1}', '0'), '{"progressToken":0,"progress":1}')
  })
})

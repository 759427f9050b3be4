// What policies decide about is what is sent, and deciding takes a bounded amount of work.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { ambiguityIn } from '../../../plugins/extensions/policies/exact.ts'
import { initialize, KEY, settings } from '../../helpers/client.ts'
import { addPolicy, rule, startWithPolicies } from '../../helpers/policies.ts'

test('arguments that programs may read differently are told from others', async () => {
  const twice = (name: string): string => `the arguments have the member "${name}" twice`
  const inexact = (number: string): string => `the arguments have the number ${number}, which cannot be read exactly`
  for (const [json, expected] of [
    ['{"p":"bad","p":"ok"}', twice('p')],
    ['{"p":1,"\\u0070":2}', twice('p')],
    ['{"a":[{"b":{"__proto__":1,"c":[],"__proto__":{}}}]}', twice('__proto__')],
    ['{"n":9007199254740993}', inexact('9007199254740993')],
    ['{"n":[1,-1e400]}', inexact('-1e400')],
    ['{"n":0.1000000000000000055}', inexact('0.1000000000000000055')],
    ['{"n":1e-400}', inexact('1e-400')],
    [`{"n":1${'0'.repeat(200)}}`, inexact(`1${'0'.repeat(39)}…`)],
    ['{"n":[0,-0,0.0,0e5,-0.50,1.0,1e3,1E+3,100e-2,0.1,1e21,5e-324,1.7976931348623157e308,9007199254740992]}', undefined],
    [' { "a" : "a" , "b" : [ "a" , "a" , { "a" : 1 } , { "a" : "x\\"" } ] , "c" : { "a" : null , "b" : true } } ', undefined],
    ['{"a":"9007199254740993","b":"{\\"p\\":1,\\"p\\":2}"}', undefined],
    ['{}', undefined], ['null', undefined]
  ] as const) assert.equal(ambiguityIn(json), expected, json)
})

test('what a policy reads, and what a person approves, is what the server gets', async (t) => {
  const { app, api, up } = await startWithPolicies(t, settings({}))
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const begun = await app.inject({ method: 'POST', url: '/mcp', headers, payload: JSON.stringify(initialize()) })
  const session = { 'mcp-session-id': String(begun.headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
  const call = async (name: string, args: string): Promise<string> => {
    const reply = await app.inject({
      method: 'POST',
      url: '/mcp',
      headers: { ...headers, ...session },
      payload: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`
    })
    return reply.body
  }
  await addPolicy(api, rule('paths', 'tool.name == "read" && has(args.p) && args.p == "bad"', 'deny'))
  await addPolicy(api, rule('asked', 'tool.name == "delete"', 'ask'))
  assert.match(await call('up-read', '{"p":"bad","p":"ok"}'), /failed, so this call is denied: the arguments have the member/)
  assert.match(await call('up-read', '{"p":"ok","n":9007199254740993}'), /the number 9007199254740993, which cannot/)
  assert.match(await call('up-delete', '{"n":1e400}'), /asks before this call, and cannot, since the arguments have the number 1e400/)
  assert.equal((await api('GET', '/approvals')).body.data.length, 0)
  assert.equal(up.reached.length, 0)
  assert.match(await call('up-write', '{"p":"bad","p":"ok"}'), /ran write/, 'no policy reads these')
})

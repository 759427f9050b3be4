// What policies decide about is what is sent, and deciding takes a bounded amount of work.
import assert from 'node:assert/strict'
import { test } from 'tap'
import {
  compileCondition, KeyFacts, PrincipalFacts, toCelArguments, ItemFacts, type PolicyContext
} from '../../../plugins/extensions/policies/cel.ts'
import { describeJsonAmbiguity } from '../../../protocol/json-ambiguity.ts'
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
  ] as const) assert.equal(describeJsonAmbiguity(json), expected, json)
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
  assert.match(await call('up-delete', '{"n":1e400}'), /asks before this call, but it cannot, since the arguments have the number 1e400/)
  assert.equal((await api('GET', '/approvals')).body.data.length, 0)
  assert.equal(up.reached.length, 0)
  assert.match(await call('up-write', '{"p":"bad","p":"ok"}'), /ran write/, 'no policy reads these')
})

const key = new KeyFacts('', '')
const facts: Omit<PolicyContext, 'args'> = {
  principal: new PrincipalFacts({ username: 'ada', isAdmin: false, teams: ['writers'], key, address: '', client: '' }),
  tool: new ItemFacts({ server: 'up', name: 'read', kind: 'tool', annotations: {}, tags: ['safe'] }),
  route: '/mcp',
  now: new Date(0)
}
const numbers = [...Array(1_000).keys()]
const long = 'a'.repeat(50_000)

function evaluate (when: string, args: object): unknown {
  return compileCondition(when).isTrue({ ...facts, args: toCelArguments(args, 1) })
}

test('a condition that takes too much work fails, also where an error would not count', async () => {
  const manyLists = `(${Array(60).fill('args.a').join('+')})`
  const args = { a: numbers, b: [...numbers.slice(1), -1], s: long, m: Object.fromEntries(numbers.map((n) => [`k${n}`, n])) }
  for (const when of [
    'args.a.all(x, args.a.all(y, !args.s.contains("aaaaaaaaaab")))',
    'args.a.all(x, args.a.all(y, x + y >= 0))',
    'args.a.exists(x, args.a.exists(y, x + y < 0 || x == args.missing)) || true',
    'args.a.exists(x, args.a.exists(y, x + y < 0)) && false',
    'args.a.map(x, args.a.map(y, [x, y])).size() < 0',
    'args.a.filter(x, args.a.exists_one(y, x == y)).size() < 0',
    `${manyLists}.all(x, ${manyLists}.all(y, x + y >= 0))`,
    'args.a.exists(x, args.s.contains(string(x) + "aaaaaaaaaaaaaaaaaa"))',
    'args.s.contains(args.s.substring(0, 8000) + "b" + args.s.substring(0, 8000))',
    'args.a.exists(x, args.a == args.b)',
    'args.a.exists(x, -1 in args.a)',
    'args.a.exists(x, (args.s + args.s) == "")',
    'args.a.exists(x, args.s.upperAscii() == "")',
    'args.a.exists(x, bytes(args.s).size() < 0)',
    'args.a.exists(x, now.getHours("Europe/Berlin") > 25)',
    'args.a.exists(x, "q".matches("a{1," + string(x) + "}"))',
    'args.s.matches("(a|b)*a(a|b){500}c$")',
    'args.s.split("").exists(x, x == args.missing)',
    'args.m.exists(x, args.m.exists(y, x + y == ""))',
    'cel.bind(x, args.a, x.exists(y, x.exists(z, z < y - 2000)))',
    'duration(args.d) > duration("1s")'
  ]) {
    assert.throws(() => evaluate(when, { ...args, d: '1'.repeat(50_000) }), { message: 'the condition is too expensive to evaluate with these values' }, when)
  }
})

test('conditions as people write them take less work, and each evaluation has its own allowance', async () => {
  const words = ['password', 'secret', 'token', 'BEGIN PRIVATE KEY', 'api_key', 'authorization']
  for (const when of [
    'args.a.exists(x, x > 998 && x < 1000)',
    'args.a.filter(x, x % 2 == 0).map(x, x * 2).size() == 500',
    'args.few.all(x, args.few.exists(y, x == y))',
    `!(${words.map((word) => `args.s.contains("${word}")`).join(' || ')})`,
    '!args.s.matches("[a-z0-9._%+-]+@[a-z0-9.-]+\\\\.[a-z]{2,4}")',
    '999 in args.a && args.a == args.a + []',
    'args.s.startsWith("a") && size(args.s) == 50000 && args.s == args.s',
    'now.getHours("Europe/Berlin") == 1 && duration("1h30m") > duration("10m")',
    '"writers" in principal.teams && "safe" in tool.tags && has(args.s)'
  ]) {
    const args = { a: numbers, few: numbers.slice(0, 50), s: long }
    for (let count = 0; count < 3; count++) assert.equal(evaluate(when, args), true, when)
  }
})

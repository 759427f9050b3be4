// What the detectors of guards find, and what they leave alone.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { memoryBudget } from '../../../plugins/base/limits/index.ts'
import { maskJson, maskText, type DetectedKind } from '../../../plugins/extensions/guards/detect/mask.ts'
import { ContentScreener, SearchedCharacterCounter } from '../../../plugins/extensions/guards/screen.ts'
import type { Guard } from '../../../schemas/guards.ts'

const all: readonly DetectedKind[] = ['secrets', 'email', 'card', 'iban', 'phone']
const masked = (text: string, kinds: readonly DetectedKind[] = all): string => maskText(text, kinds).text

const found: ReadonlyArray<readonly [text: string, masked: string]> = [
  ['mail bob@example.com, and <carol.x+y@sub.example.co.uk>.', 'mail [email], and <[email]>.'],
  ['\'bob@x.com\' mailto:bob%40x.com?subject=1 https://x.org/u/bob@x.com', '\'[email]\' mailto:[email]?subject=1 https://x.org/u/[email]'],
  ['jörg@münchen.de', '[email]'],
  ['4111 1111 1111 1111, 4111-1111-1111-1111, 378282246310005, 3782 822463 10005', '[card], [card], [card], [card]'],
  ['order 1234 4111 1111 1111 1111', 'order 1234 [card]'],
  ['DE89 3704 0044 0532 0130 00 is it; GB82WEST12345698765432', '[iban] is it; [iban]'],
  ['+49 171 1234567, (555) 234-5678, 0049 171 1234567, 030 12345678, tel:+1-202-555-0143', '[phone], [phone], [phone], [phone], tel:[phone]'],
  ['01 23 45 67 89, 06.12.34.56.78, 06-12-34-56-78; 06 1234 5678', '[phone], [phone], [phone]; [phone]'],
  ['appel de 01 23 45 67 89, au 06 12 34 56 78 de Paul', 'appel de [phone], au [phone] de Paul'],
  ['02 9876 5432, 03-1234-5678, 08-123 456 78, 0711 99 88 77 66', '[phone], [phone], [phone], [phone]'],
  // Discord, Square, Azure, Grafana, Notion.
  [`${Buffer.from('812345678901234567').toString('base64')}.GaB3dE.${'aB3-dE6_g'.repeat(4)}hi`, '[secret]'],
  [`EAAA${'lB3-dE6_gH9k'.repeat(5)} ${'aB3'}8Q~${'dE6.gH9-k'.repeat(4).slice(0, 34)}`, '[secret] [secret]'],
  [`glc_${'eyJvIjoiMTIz'.repeat(6)}== secret_${'aB3dE6gH9'.repeat(4)}kL2mN4p`, '[secret] [secret]'],
  ['AKIAIOSFODNN7EXAMPLE', '[secret]'],
  ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'aws_secret_access_key = [secret]'],
  ['token=ghp_abcdefghijklmnopqrstuvwxyz0123456789', 'token=[secret]'],
  [`github_pat_${'1aB'.repeat(7)}1_${'cD2'.repeat(19)}ef`, '[secret]'],
  ['xoxb-123456789012-abcdefABCDEF sk_live_4eC39HqLyjWDarjtT1zdp7dc', '[secret] [secret]'],
  ['sk-ant-api03-AbC123def456ghi789jkl sk-proj-AbC123def456ghi789jkl', '[secret] [secret]'],
  [`AIza${'SyD-9tSr'.repeat(4)}abc`, '[secret]'],
  ['Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U', 'Bearer [secret]'],
  ['npm_abcdefghijklmnopqrstuvwxyz0123456789', '[secret]'],
  ['Aghp_abcdefghijklmnopqrstuvwxyz0123456789 xAKIAIOSFODNN7EXAMPLE', 'A[secret] x[secret]'],
  ['-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest', '[secret]\nrest'],
  ['-----BEGIN PRIVATE KEY-----\nMIIE', '[secret]'],
  ['redis://:hunter2@cache:6379/0', 'redis://:[secret]@cache:6379/0'],
  // Escapes of JSON in a text, once and twice, and of URLs: they stay whole.
  ['{"a":"\\nbob@x.com","b":"bob\\u0040y.org"}', '{"a":"\\n[email]","b":"[email]"}'],
  ['{"c":"\\u003cdan@z.com\\u003e","d":"{\\"e\\":\\"bob\\\\u0040x.com\\"}"}', '{"c":"\\u003c[email]\\u003e","d":"{\\"e\\":\\"[email]\\"}"}'],
  ['%0Abob%40x.com', '%0A[email]'],
  ['DOMAIN\\user@x.com', 'DOMAIN\\[email]'],
  // What only looks as if it began with an escape.
  ['a %4111 1111 1111 1111 b', 'a [card] b'],
  ['a \\u4111111111111111 b', 'a [card] b'],
  ['%DE89370400440532013000', '[iban]'],
  ['"\\\\u4111111111111111"', '"[card]"'],
  ...['_', '/', '+', '  ', '\n', '\r\n', '\u200b'].map((gap) => ['4111', '1111', '1111', '1111'].join(gap)).map((each) => [each, '[card]'] as const)
]

test('content of each kind is found, however it is written', async () => {
  for (const [text, expected] of found) assert.equal(masked(text), expected)
})

const ordinary = [
  'icon@2x.png user@localhost @scope/pkg@1.2.3 a @ b.com',
  // Wrong check digits, and numbers that are no cards.
  '4111111111111112 4111 1111 1111 1112 1700000000000 0.4111111111111111 0000000000000000',
  'DE88370400440532013000 GB82 WEST 1234 5698 7654 33',
  '2026-11-30 10:00:00 192.168.100.200 12345678 550e8400-e29b-41d4-a716-446655440000 v1.2.3-4 555-1234',
  'task-force-report-of-spring-2026 monkey-0123456789abcdef0123456789abcdef AAKIAIOSFODNN7EXAMPLES',
  'sk-loading-spinner-small-blue-icon ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx https://host:8080/a@b',
  '01 02 03 04 05 06 07 08 09 10, 01-02-2026, 05.06.2026 10:20, 01.02.03.04, EAAAAAAAAA secret_agent',
  'Tue Dec 01 2026 1530, 01 2026 10 30, 05-2026-0123, ff 01 02 03 04 05 fe, FE-01-02-03-04-05-0A',
  'A text about keys, tokens and passwords: none is here.'
]

test('what only resembles it is left alone', async () => {
  for (const text of ordinary) assert.deepEqual(maskText(text, all), { text, found: [] })
})

test('only the kinds that a guard names are looked for', async () => {
  assert.equal(masked('bob@x.com 4111111111111111', ['card']), 'bob@x.com [card]')
  assert.deepEqual(maskText('bob@x.com 4111111111111111', all).found, ['email', 'card'])
})

test('JSON stays JSON of the same shape, and keeps the bytes of all that is not masked', async () => {
  const blob = Buffer.from('write to bob@x.com').toString('base64')
  const image = Buffer.alloc(3_000, 0xfb).toString('base64')
  for (const [given, expected] of [
    ['{ "n":12345678901234567890, "e":1e400,"s":"bob\\u0040x.com" }', '{ "n":12345678901234567890, "e":1e400,"s":"[email]" }'],
    ['{"card":4111111111111111,"same":4.111111111111111e15,"id":4111111111111112}', '{"card":0,"same":0,"id":4111111111111112}'],
    ['{"card":-4111111111111111,"same":-4.111111111111111e15}', '{"card":0,"same":0}'],
    ['{"bob@x.com":1,"eve@x.com":2,"plain":3}', '{"[email]":1,"[email] 2":2,"plain":3}'],
    ['["\\ud83d\\ude00","bob@x.com",true,null]', '["\\ud83d\\ude00","[email]",true,null]'],
    [`{"blob":"${blob}"}`, `{"blob":"${Buffer.from('write to [email]').toString('base64')}"}`],
    [`{"type":"image","data":"${image}"}`, `{"type":"image","data":"${image}"}`],
    ['{"data":["QUtJQUlPU0ZPRE5ON0VYQU1QTEU=",{"x":1},"Ym9iQHguY29t"]}', `{"data":["${Buffer.from('[secret]').toString('base64')}",{"x":1},"${Buffer.from('[email]').toString('base64')}"]}`],
    ['{"data":"AKIAIOSFODNN7EXAMPLE"}', '{"data":"[secret]"}']
  ] as const) {
    const { text } = maskJson(given, all)
    JSON.parse(text)
    assert.equal(text, expected)
  }
})

test('JSON within a text stays JSON, too', async () => {
  const [given, expected] = [
    { card: 4111111111111111, list: [4111111111111111, 5], text: '4111 1111 1111 1111', 'bob@x.com': 1, 'eve@x.com': '{"n":4111111111111111}' },
    { card: 0, list: [0, 5], text: '[card]', '[email]': 1, '[email] 2': '{"n":0}' }
  ].map((value) => JSON.stringify(value))
  const resource = (text = ''): string => JSON.stringify({ text, blob: Buffer.from(text).toString('base64') })
  assert.equal(maskJson(resource(given), all).text, resource(expected))
  assert.equal(maskJson('{"text":"{4111111111111111}"}', all).text, '{"text":"{[card]}"}')
})

test('base64 is searched, and is not read as text only where it is media', async () => {
  const base64 = (text: string, encoding: BufferEncoding = 'utf8'): string => Buffer.from(text, encoding).toString('base64')
  const filler = 'a'.repeat(300)
  const token = `AKIAIOSFODNN7EXAMPLE-${filler}`
  const media = `/AKIAIOSFODNN7EXAMPLE/${'a'.repeat(302)}`
  const prose = `call +49 171 1234567 now ${'a '.repeat(150)}`
  const lines = base64(`${filler} bob@x.com`).replace(/.{76}/g, '$&\\r\\n')
  for (const [given, expected] of [
    [`{"data":"${token}"}`, `{"data":"[secret]-${filler}"}`],
    [`{"structuredContent":{"type":"x","blob":"${token}","data":["${token}"]}}`, `{"structuredContent":{"type":"x","blob":"[secret]-${filler}","data":["[secret]-${filler}"]}}`],
    [`{"type":"image","mimeType":"image/png","data":{"data":"${token}"}}`, `{"type":"image","mimeType":"image/png","data":{"data":"[secret]-${filler}"}}`],
    [`{"content":[{"type":"text","text":"x"},{"data":"${media}","type":"image","mimeType":"image/png"}]}`, undefined],
    [`{"contents":[{"blob":"${media}","uri":"test://x"}]}`, undefined],
    [`{"result":{"content":[{"type":"resource","resource":{"blob":"${media}","uri":"test://x"}}]}}`, undefined],
    [`{"structuredContent":{"content":[{"blob":"${media}","uri":"x"}]}}`, `{"structuredContent":{"content":[{"blob":"${media.replace(/AKIA\w+/, '[secret]')}","uri":"x"}]}}`],
    [`{"contents":[{"blob":"${prose}","uri":"test://x"}]}`, `{"contents":[{"blob":"${prose.replace('+49 171 1234567', '[phone]')}","uri":"test://x"}]}`],
    [`{"blob":"${lines}"}`, `{"blob":"${base64(`${filler} [email]`)}"}`],
    [`{"blob":"${base64('J\u00f6rg: bob@x.com', 'latin1')}"}`, `{"blob":"${base64('J\u00f6rg: [email]', 'latin1')}"}`]
  ] as const) assert.equal(maskJson(given, all, true).text, expected ?? given)
  const sent = `{"contents":[{"blob":"${media}","uri":"test://x"}]}`
  assert.notEqual(maskJson(sent, all).text, sent, 'arguments have no media')
})

test('what exceeds the budget of a message is searched in a worker, and short texts are not searched at all', async () => {
  const screen = new ContentScreener({ report: () => {}, warn: (error) => { throw error } })
  const guard: Guard = { id: 'g', name: 'Private', on: 'both', detect: [...all], action: 'mask' }
  const member = JSON.stringify({ data: Array.from({ length: 4_000 }, () => 'A') })
  const apply = (searched: SearchedCharacterCounter): string | Promise<string> =>
    screen.apply(guard, member, { side: 'arguments', server: 's', tool: 't' }, 'owner', searched)
  const message = new SearchedCharacterCounter()
  const answers = [apply(message), apply(message), apply(message), apply(message)]
  assert.deepEqual(answers.map((each) => typeof each === 'string'), [true, true, false, false])
  assert.deepEqual(await Promise.all(answers), [member, member, member, member])
  assert.equal(typeof apply(new SearchedCharacterCounter()), 'string', 'another message has a budget of its own')
})

test('texts that wait for a thread count towards the memory budget, with a share for each caller', async (t) => {
  const screen = new ContentScreener({ report: () => {}, warn: () => {} })
  const text = JSON.stringify('a '.repeat(32 * 1024))
  const apply = (owner: string, action: Guard['action']): string | Promise<string> => {
    const guard: Guard = { id: 'g', name: 'Private', on: 'both', detect: [...all], action }
    return screen.apply(guard, text, { side: 'results', server: 's', tool: 't' }, owner, new SearchedCharacterCounter())
  }
  const answer = apply('ann', 'mask')
  assert.equal(memoryBudget.held, text.length * 2)
  assert.equal(await answer, text)
  assert.equal(memoryBudget.held, 0)
  t.after(memoryBudget.reserve('ann', memoryBudget.max * 3 / 4))
  await assert.rejects(async () => await apply('ann', 'mask'), /"Private" could not search the results: You have reached your share/)
  assert.equal(await apply('ann', 'flag'), text)
  assert.equal(await apply('ben', 'mask'), text)
})

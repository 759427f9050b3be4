import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { test } from 'tap'
import { compressText, type CompressedText, type CompressionOptions } from '../../../plugins/extensions/compression/compress.ts'
import { detectStrategy } from '../../../plugins/extensions/compression/detect.ts'
import { compressResult } from '../../../plugins/extensions/compression/result.ts'
import { strategyNames } from '../../../plugins/extensions/compression/strategies/strategy.ts'
import { loadTokenCounter } from '../../../plugins/extensions/compression/tokens.ts'

const project = new URL('../../../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, project), 'utf8')
const sources = readdirSync(new URL('plugins/gateway/', project)).filter((name) => name.endsWith('.ts')).map((name) => `plugins/gateway/${name}`)

const lock = read('package-lock.json')
/** What `grep -n import` writes. */
const grep = sources.flatMap((path) => read(path).split('\n').map((line, index) => `${path}:${index + 1}:${line}`).filter((line) => line.includes('t'))).join('\n')
/** What `git diff` writes where each third line has changed. */
const changed = sources.map((path) => {
  const lines = read(path).split('\n')
  const body = lines.flatMap((line, index) => index % 3 === 0 ? [`-${line}`, `+${line} // changed`] : [` ${line}`])
  const size = `${lines.length}`
  return [`diff --git a/${path} b/${path}`, 'index 1111111..2222222 100644', `--- a/${path}`, `+++ b/${path}`, `@@ -1,${size} +1,${size} @@`, ...body].join('\n')
}).join('\n')
const log = Array.from({ length: 5_000 }, (_, n) => {
  const time = `2026-11-22T10:${String(Math.floor(n / 600) % 60).padStart(2, '0')}:${String(n % 60).padStart(2, '0')}Z`
  if (n === 3_131) return `${time} ERROR upstream refused the connection: code=ECONNREFUSED port=4711\n    at Socket.connect (net.js:12:3)\n    at retry (pool.js:40:1)`
  return `${time} INFO request ${n} of client-${n % 7} took ${n % 90} ms`
}).join('\n')
const inputs = { json: lock, log, search: grep, diff: changed, text: `${read('README.md')}\n${read('docs/lifecycle.md')}` }

const options: CompressionOptions = { strategy: 'auto', minTokens: 2_000, maxOutputTokens: 1_200 }
const body = ({ text }: CompressedText): string => text.slice(text.indexOf('\n') + 1)

void test('each kind of text is told, and comes out within the target, by the tokenizer', async () => {
  const count = await loadTokenCounter()
  for (const [kind, text] of Object.entries(inputs)) {
    assert.equal(detectStrategy(text), kind)
    for (const maxOutputTokens of [40, 200, 1_200]) {
      const compressed = compressText(text, { ...options, maxOutputTokens }, count)
      assert.ok(compressed, kind)
      assert.ok(count(compressed.text) <= maxOutputTokens, `${kind}: ${count(compressed.text)} of ${maxOutputTokens}`)
      assert.ok(compressed.text.length < text.length)
      assert.equal(compressed.tokensBefore, count(text))
      if (maxOutputTokens < 1_200) continue
      assert.equal(compressed.strategy, kind)
      assert.match(compressed.text, new RegExp(`^\\[compressed, strategy ${kind}: [\\d,]+ tokens became [\\d,]+; the original is linked\\]\\n`))
      assert.ok(count(compressed.text) > 500 || kind === 'log', `${kind} uses what it may: ${count(compressed.text)}`)
    }
  }
})

void test('targets below what the first line needs hold as well', async () => {
  const count = await loadTokenCounter()
  for (const strategy of strategyNames) {
    for (const maxOutputTokens of [1, 12, 21, 44]) {
      const compressed = compressText(inputs[strategy], { ...options, strategy, maxOutputTokens }, count)
      assert.ok(compressed && compressed.text !== '', `${strategy} ${maxOutputTokens}`)
      assert.ok(count(compressed.text) <= maxOutputTokens, `${strategy}: ${count(compressed.text)} of ${maxOutputTokens}`)
      if (maxOutputTokens > 20) assert.match(compressed.text, /^\[compressed, .*\d to|became [\d,]+/)
    }
  }
})

void test('the first line counts as the tokenizer does, and says where a run is too long for that', async () => {
  const count = await loadTokenCounter()
  const texts = {
    base64: Buffer.from(Array.from({ length: 20_000 }, (_, n) => n * n % 251)).toString('base64'),
    lines: Array.from({ length: 5_000 }, (_, n) => `file${n * 7}.ts`).join('\n'),
    prose: inputs.text
  }
  for (const [name, text] of Object.entries(texts)) {
    const compressed = compressText(text, { ...options, strategy: 'text' }, count)
    const [, before, after] = /: ([\d,]+) tokens became ([\d,]+);/.exec(compressed?.text ?? '') ?? []
    assert.equal(Number(before?.replace(',', '')), countTokens(text), name)
    assert.equal(Number(after?.replace(',', '')), count(compressed?.text ?? ''), name)
  }
  assert.match(compressText('='.repeat(900_000), options, count)?.text ?? '', /: about [\d,]+ tokens became /)
})

void test('listings and tables are no logs: their rows differ', async () => {
  const rows = (write: (n: number) => string): string => Array.from({ length: 900 }, (_, n) => write(n)).join('\n')
  const month = (n: number): string => String(n % 12 + 1).padStart(2, '0')
  for (const table of [
    rows((n) => `-rw-r--r-- 1 root root ${n * 7} Nov 23 07:40 file${n}.ts`),
    rows((n) => `2026-${month(n)}-10,ACC-${1_000 + n},${n},EUR`),
    rows((n) => `${n},name,${n * 3}`),
    rows((n) => `| ${n} | row | ${n % 7} |`),
    rows((n) => `INSERT INTO t VALUES (${n}, 'x${n}');`)
  ]) assert.equal(detectStrategy(table), 'text')
  assert.equal(detectStrategy(rows((n) => n % 50 === 0 ? 'retrying' : 'still waiting for the lock')), 'log')
})

void test('each named strategy takes every text, and never makes it longer', async () => {
  const count = await loadTokenCounter()
  for (const strategy of strategyNames) {
    for (const text of Object.values(inputs)) {
      const compressed = compressText(text, { ...options, strategy }, count)
      assert.ok(compressed && count(compressed.text) <= 1_200)
    }
  }
  await fc.assert(fc.asyncProperty(
    fc.oneof(fc.string({ unit: 'grapheme', maxLength: 3_000 }), fc.json({ maxDepth: 5 }), fc.array(fc.lorem(), { maxLength: 40 }).map((lines) => lines.join('\n'))),
    fc.constantFrom(...strategyNames, 'auto' as const),
    fc.integer({ min: 1, max: 200 }),
    async (text, strategy, maxOutputTokens) => {
      const compressed = compressText(text, { strategy, minTokens: 1, maxOutputTokens }, count)
      if (compressed === undefined) return
      assert.ok(compressed.text.length < text.length)
      assert.ok(count(compressed.text) < count(text))
      assert.ok(count(compressed.text) <= maxOutputTokens, `${count(compressed.text)} of ${maxOutputTokens}`)
      assert.doesNotMatch(compressed.text, /\p{Surrogate}/u)
    }
  ), { numRuns: 300 })
})

void test('json: structure, sample and schema; numbers keep their digits', async () => {
  const count = await loadTokenCounter()
  const rows = Array.from({ length: 5_000 }, (_, id) => `{"id":${id},"big":12345678901234567890,"name":"user ${id}","tags":["a","b"]${id % 2 === 0 ? ',"note":null' : ''}}`)
  const compressed = compressText(`{"total": 5000, "users": [${rows.join(', ')}]}`, options, count)
  assert.ok(compressed)
  const value = JSON.parse(body(compressed)) as { total: number, users: unknown[] }
  assert.equal(value.total, 5_000)
  assert.match(String(value.users[0]), /^5,000 items, each \{id: number, big: number, name: string, tags: string\[\], note\?: null\}; the first \d+ and the last \d+ shown$/)
  assert.match(body(compressed), /\{"id":0,"big":12345678901234567890,/)
  assert.match(body(compressed), /\{"id":4999,/)
})

void test('json: what is said of all items is true of all', async () => {
  const count = await loadTokenCounter()
  const told = (rows: unknown[]): string => compressText(JSON.stringify(rows), options, count)?.text ?? ''
  const odd = (length: number, at: number, item: object, other: unknown): unknown[] =>
    Array.from({ length }, (_, n) => n === at ? other : { ...item, i: n })
  assert.match(told(odd(2_000, 1_500, { v: 'a', e: null }, { i: 1, v: 'a', e: { code: 5 }, extra: 1 })), /each \{v: string, e: null \| \{code: number\}, i: number, extra\?: number\}/)
  assert.match(told(odd(500, 250, { name: 'ann and some more', deleted: null }, { name: 'ben', deleted: '2026-01-01', i: 2 })), /deleted: null \| string/)
  assert.match(told(odd(2_000, 900, {}, 'a text')), /each string \| \{i: number\}/)
  assert.match(told(odd(60_000, 30_001, { v: 1 }, { v: 'x' })), /60,000 items, most \{/)
})

void test('log: the failure stands there with its stack, and repeats are counted', async () => {
  const compressed = compressText(log, options, await loadTokenCounter())
  assert.ok(compressed)
  assert.match(compressed.text, /port=4711\n {4}at Socket\.connect.*\n {4}at retry/)
  assert.match(compressed.text, /and [\d,]+ lines like it/)
})

void test('log: a build is told by the failure at its end, and paths with such words are none', async () => {
  const count = await loadTokenCounter()
  const lines = Array.from({ length: 3_000 }, (_, n) => `File '/app/node_modules/error-${'abcdefgh'[n % 8]}/lib/${n.toString(36)}/exception.js' exists - use it as ${sources[n % 20] ?? n}`)
  lines.splice(2_990, 0, 'src/entry.ts(12,8): error TS2307: Cannot find module \'./missing.js\'')
  assert.equal(detectStrategy(lines.join('\n')), 'log')
  const compressed = compressText(lines.join('\n'), options, count)
  assert.match(compressed?.text ?? '', /entry\.ts\(12,8\): error TS2307: Cannot find module/)
})

/** Lines of a log that say something else each. */
const varied = (n: number): string => {
  const words = 'apple banana cherry delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa quebec romeo sierra'.split(' ')
  return `2026-01-01 00:00:00,123 INFO  [main] c.e.A - ${[n, n * 7 + 3, n * n, n * 13 + Math.floor(n / 19)].map((at) => words[at % 19]).join(' ')}`
}
const rows = (length: number, write: (n: number) => string): string[] => Array.from({ length }, (_, n) => write(n))

void test('log: the stack of the only error stays, with what it comes from', async () => {
  const count = await loadTokenCounter()
  for (const frames of [1, 5, 20]) {
    const stack = rows(frames, (n) => `\tat c.e.B.m${n}(B.java:${n})`)
    const error = ['2026-01-01 00:00:01,123 ERROR [main] c.e.B - boom', 'java.lang.NullPointerException: outer', ...stack, 'Caused by: java.io.IOException: inner', '\t... 10 more']
    const text = compressText([...rows(1_000, varied), ...error, ...rows(500, varied)].join('\n'), options, count)?.text ?? ''
    for (const kept of ['- boom', 'NullPointerException: outer', 'm0(B.java:0)', 'IOException: inner']) assert.ok(text.includes(kept), `${frames}: ${kept}`)
  }
})

void test('log: many errors leave room for how it ended', async () => {
  const count = await loadTokenCounter()
  const errors = rows(300, (n) => `2026-01-01 ERROR ${varied(n).slice(40)} ${(n * 7919).toString(36)} request failed`)
  const text = compressText([...errors, ...rows(200, varied), '2026-01-01 FATAL giving up'].join('\n'), options, count)?.text ?? ''
  assert.match(text, /FATAL giving up$/)
  const middle = compressText([...errors, '2026-01-01 FATAL out of memory', ...errors, ...rows(200, varied)].join('\n'), options, count)?.text ?? ''
  assert.match(middle, /FATAL out of memory/)
})

void test('log: failures that differ in figures are told one by one while there is room', async () => {
  const count = await loadTokenCounter()
  const failures = rows(400, (n) => `src/app.ts(${n},5): error TS2304: Cannot find name 'foo'.`).join('\n')
  const whole = compressText(failures, { ...options, strategy: 'log', maxOutputTokens: 3_000 }, count)
  assert.ok(whole && count(whole.text) > 2_500, 'the room is used')
  assert.match(whole.text, /app\.ts\(0,5\).*\n.*app\.ts\(1,5\)[^]*lines like it\)$/)
  const same = compressText(rows(4_000, () => 'error: the same again').join('\n'), { ...options, strategy: 'log' }, count)
  assert.equal(same && body(same), 'error: the same again  (and 3,999 lines like it)')
})

void test('log: the lines beside failures are told while there is room', async () => {
  const count = await loadTokenCounter()
  const at = (n: number): string => `2026-01-01T00:${String(Math.floor(n / 60)).padStart(2, '0')}:${String(n % 60).padStart(2, '0')}Z`
  for (const [every, first, isTold] of [[3_000, 1_500, /request 1499 ok\n.* ERROR[^\n]*\n.*request 1501 ok/], [600, 300, /request 2699 ok\n.* ERROR[^\n]*\n.*request 2701 ok/]] as const) {
    const lines = rows(3_000, (n) => n % every === first ? `${at(n)} ERROR boom ${varied(n).slice(40)}` : `${at(n)} INFO request ${n} ok`)
    const text = compressText(lines.join('\n'), { ...options, strategy: 'log' }, count)?.text ?? ''
    assert.match(text, isTold)
    const shown = text.split('\n').flatMap((line) => /request (\d+)/.exec(line)?.[1] ?? []).map(Number)
    assert.deepEqual(shown, [...shown].sort((a, b) => a - b), 'in their order')
    assert.equal(new Set(shown).size, shown.length, 'each once')
    const folded = [...text.matchAll(/and ([\d,]+) lines? like it/g)].reduce((sum, [, n = '']) => sum + Number(n.replace(',', '')), 0)
    assert.equal(folded + text.split('\n').length - 1, 3_000, 'all lines are accounted for')
  }
  const repeated = rows(3_000, (n) => n % 300 === 30 ? `${at(n)} ERROR payment ${n} refused` : n % 3 ? `${at(n)} INFO request ${n} ok` : `${at(n)} DEBUG hit ${n}`)
  const text = compressText(repeated.join('\n'), { ...options, strategy: 'log' }, count)?.text ?? ''
  for (let n = 30; n < 3_000; n += 300) assert.match(text, new RegExp(`request ${n - 2} ok.*\n.*payment ${n} refused\n.*request ${n + 1} ok`))
  const same = rows(2_000, (n) => n === 1_000 ? 'ERROR boom' : 'INFO waiting')
  assert.equal(body(compressText(same.join('\n'), { ...options, strategy: 'log', minTokens: 10 }, count) ?? { text: '', strategy: 'log', tokensBefore: 0, tokensAfter: 0 }),
    'INFO waiting  (and 999 lines like it)\nERROR boom\nINFO waiting  (and 998 lines like it)', 'what says the same is not told again')
})

void test('log: what programs print of their steps is one, in colours as well, and its failure stays', async () => {
  const count = await loadTokenCounter()
  const red = '\u001b[31m'
  const at = (n: number, failed: string, step: (n: number) => string): string => n === 300 ? failed : step(n)
  const outputs: Record<string, (n: number) => string> = {
    colours: (n) => at(n, `${red}ERROR\u001b[0m kaboom`, (n) => `\u001b[32mINFO\u001b[0m step ${n}`),
    'colours behind a time': (n) => at(n, `[12:00:00.300] ${red}ERROR\u001b[39m kaboom`, (n) => `[12:00:00.${n}] \u001b[32mINFO\u001b[39m step ${n}`),
    jest: (n) => at(n, 'FAIL src/kaboom.test.ts', (n) => `PASS src/${varied(n).slice(40).replaceAll(' ', '-')}.test.ts (${n} ms)`),
    pytest: (n) => at(n, 'tests/test_a.py::kaboom FAILED', (n) => `tests/test_a.py::${varied(n).slice(40).replaceAll(' ', '_')} PASSED`),
    npm: (n) => at(n, 'npm ERR! code kaboom', (n) => `npm http fetch GET 200 https://registry.example/${varied(n).slice(40).replaceAll(' ', '-')}`),
    docker: (n) => at(n, '#12 ERROR: kaboom', (n) => `#${n % 20} 0.${n} ${varied(n).slice(40)}`),
    training: (n) => at(n, 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: kaboom', (n) => `Epoch ${n} loss ${n / 7}`),
    requests: (n) => at(n, '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET /kaboom HTTP/1.1" 500 9', (n) => `10.0.0.${n % 9} - - [01/Jan/2026:00:00:00 +0000] "GET /p HTTP/1.1" 200 ${n}`)
  }
  for (const [what, line] of Object.entries(outputs)) {
    const text = rows(1_000, line).join('\n')
    assert.equal(detectStrategy(text), 'log', what)
    const compressed = compressText(text, options, count)?.text ?? ''
    assert.match(compressed, /kaboom/, what)
    assert.ok(!compressed.includes('\u001b'), what)
  }
})

void test('search: each file has a hit while there is room, and all are counted', async () => {
  const compressed = compressText(grep, options, await loadTokenCounter())
  assert.ok(compressed)
  assert.match(compressed.text, new RegExp(`^${grep.split('\n').length.toLocaleString('en-US')} hits in ${sources.length} files$`, 'm'))
  for (const path of sources) assert.ok(compressed.text.includes(`\n${path}\n`), path)
})

void test('diff: files and hunks stay, context goes first', async () => {
  const compressed = compressText(changed, options, await loadTokenCounter())
  assert.ok(compressed)
  for (const path of sources) assert.ok(compressed.text.includes(path), path)
  assert.doesNotMatch(compressed.text, /^ [^ ]/m)
})

/** A diff of files whose hunks each replace some lines, add some, and remove some. */
const diffOf = (files: number, [removed, added]: readonly [number, number], words = 8): string => rows(files, (file) => [
  `diff --git a/src/f${file}.ts b/src/f${file}.ts`, `--- a/src/f${file}.ts`, `+++ b/src/f${file}.ts`, '@@ -1,9 +1,9 @@', ' before',
  ...rows(removed, (n) => `-old ${file}.${n} ${varied(n + file).slice(40).repeat(words / 4)}`),
  ...rows(added, (n) => `+new ${file}.${n} ${varied(n + file).slice(40).repeat(words / 4)}`), ' after'
].join('\n')).join('\n')
const signed = (text: string, sign: '+' | '-'): string[] => text.split('\n').flatMap((line) =>
  line.startsWith(`${sign}${sign === '+' ? 'new' : 'old'} `) ? [line.split(' ')[1] ?? ''] : [])

void test('diff: a removed line stays with the added one in its place, in fewer files rather than by halves', async () => {
  const count = await loadTokenCounter()
  for (const [files, each, max] of [[40, [1, 1], 1_200], [40, [3, 3], 1_200], [6, [20, 20], 1_200], [60, [1, 1], 1_000]] as const) {
    const text = compressText(diffOf(files, each), { ...options, strategy: 'diff', maxOutputTokens: max }, count)?.text ?? ''
    const [removed, added] = [signed(text, '-'), signed(text, '+')]
    assert.ok(added.length > 3, `${files} files: ${added.length} added lines`)
    assert.deepEqual(removed, added, `${files} files: whole pairs`)
    assert.ok(count(text) > max * 0.85, `${count(text)} of ${max} tokens`)
  }
  const whole = compressText(diffOf(3, [2, 4], 64), { ...options, strategy: 'diff', minTokens: 100 }, count)?.text ?? ''
  for (const file of [0, 1, 2]) {
    if (signed(whole, '-').some((each) => each === `${file}.1`)) assert.ok(signed(whole, '+').includes(`${file}.1`))
  }
  assert.ok(signed(whole, '+').length >= signed(whole, '-').length)
})

void test('diff: of very many small files, some have whole changes', async () => {
  const count = await loadTokenCounter()
  for (const files of [40, 150, 300]) {
    for (const maxOutputTokens of [400, 1_200]) {
      const text = compressText(diffOf(files, [1, 1]), { ...options, strategy: 'diff', maxOutputTokens }, count)?.text ?? ''
      const [removed, added] = [text.match(/^-(?!--)/gm) ?? [], text.match(/^\+(?!\+\+)/gm) ?? []]
      assert.ok(added.length >= 2 && removed.length === added.length, `${files} files, ${maxOutputTokens} tokens: ${text}`)
      assert.match(text, /^… \d+ more files$/m)
      assert.ok(count(text) <= maxOutputTokens)
    }
  }
})

void test('diff: what is added comes before what is only removed', async () => {
  const count = await loadTokenCounter()
  const hunk = (file: number): string => [
    `diff --git a/f${file} b/f${file}`, `--- a/f${file}`, `+++ b/f${file}`, '@@ -1,9 +1,9 @@',
    ...rows(30, (n) => `-old ${file}.gone${n} ${varied(n).slice(40)}`), ' kept', `-old ${file}.x was`, `+new ${file}.x is`, ' kept', `+new ${file}.y more`
  ].join('\n')
  const text = compressText(rows(8, hunk).join('\n'), { ...options, strategy: 'diff', maxOutputTokens: 700 }, count)?.text ?? ''
  for (const file of rows(8, String)) {
    for (const name of ['x', 'y']) assert.ok(signed(text, '+').includes(`${file}.${name}`), `${file}.${name}: ${text}`)
    assert.ok(text.indexOf(`-old ${file}.x`) < text.indexOf(`+new ${file}.x`))
  }
})

void test('what would stall a tokenizer or a scanner does not', async () => {
  const count = await loadTokenCounter()
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  for (const text of ['a'.repeat(100_000), '😀'.repeat(30_000), '\n'.repeat(60_000), ' '.repeat(60_000), `${'{'.repeat(50_000)}`, deep, '0'.repeat(60_000), 'a:1:'.repeat(20_000)]) {
    for (const strategy of ['auto', ...strategyNames] as const) {
      const compressed = compressText(text, { ...options, strategy }, count)
      if (compressed) assert.ok(count(compressed.text) <= 1_200 && compressed.text.length < text.length)
    }
  }
})

void test('results: text blocks only, of successes only, all other bytes as they were', async () => {
  const count = await loadTokenCounter()
  const all = { ...options, structuredContent: false, uriPrefix: 'x://' }
  const image = '{"type":"image","data":"aGk=","mimeType":"image/png","n":1e400}'
  const result = `{"content":[${image},{"type":"text","annotations":{"priority":1e2},"text":${JSON.stringify(log)}},{"type":"text","text":"short"}],"structuredContent":{"a":1e400},"_meta":{"k":12345678901234567890}}`
  const compressed = compressResult(result, all, count)
  assert.deepEqual(compressed?.originals, [{ text: log, mimeType: 'text/plain' }])
  assert.ok(compressed.result.startsWith(`{"content":[${image},{"type":"text","annotations":{"priority":1e2},"text":"[compressed`))
  assert.ok(compressed.result.endsWith('{"type":"text","text":"short"}],"structuredContent":{"a":1e400},"_meta":{"k":12345678901234567890}}'))
  const { content } = JSON.parse(compressed.result) as { content: Array<Record<string, unknown>> }
  assert.deepEqual([content[2]?.type, content[2]?.uri, content[2]?.size], ['resource_link', 'x://0', Buffer.byteLength(log)])
  assert.equal(compressResult(result.replace('{"content"', '{"isError":true,"content"'), all, count), undefined)
  assert.equal(compressResult('{"content":[{"type":"text","text":"short"}]}', all, count), undefined)
  const half = `{"content":[{"type":"text","text":"${'\\ud800 word'.repeat(3_000)}"}]}`
  assert.equal(compressResult(half, all, count)?.originals[0]?.text, '\ufffd word'.repeat(3_000), 'what UTF-8 cannot hold is replaced')
})

void test('structuredContent: only when asked, and then with the same keys and types', async () => {
  const count = await loadTokenCounter()
  const structured = JSON.stringify({ rows: Array.from({ length: 3_000 }, (_, n) => ({ n, name: `row ${n}` })), total: 3_000 })
  const result = `{"content":[],"structuredContent":${structured}}`
  assert.equal(compressResult(result, { ...options, structuredContent: false, uriPrefix: 'x://' }, count), undefined)
  const compressed = compressResult(result, { ...options, structuredContent: true, uriPrefix: 'x://' }, count)
  assert.equal(compressed?.originals[0]?.text, structured)
  const { structuredContent } = JSON.parse(compressed.result) as { structuredContent: { rows: unknown[], total: number } }
  assert.equal(structuredContent.total, 3_000)
  assert.deepEqual(structuredContent.rows[0], { n: 0, name: 'row 0' })
  assert.ok(structuredContent.rows.length > 10 && count(JSON.stringify(structuredContent)) <= 1_200)
})

void test('a log of JSON lines is a log, whose errors stay', async () => {
  const count = await loadTokenCounter()
  const lines = (level: (n: number) => unknown): string => Array.from({ length: 4_000 }, (_, n) => JSON.stringify({
    level: level(n),
    time: 1_790_000_000_000 + n,
    msg: `request ${n} completed`,
    ...(n === 2_000 ? { err: { message: 'ECONN-XYZZY refused' } } : {})
  })).join('\n')
  for (const text of [lines((n) => n === 2_000 ? 50 : 30), lines((n) => n === 2_000 ? 'error' : 'info')]) {
    assert.equal(detectStrategy(text), 'log')
    assert.match(compressText(text, options, count)?.text ?? '', /XYZZY/)
  }
  // Records of something else are data.
  assert.equal(detectStrategy(Array.from({ length: 50 }, (_, n) => JSON.stringify({ id: n, name: `n${n}` })).join('\n')), 'json')
})

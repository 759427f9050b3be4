// The blocks of docs/api.md run as printed, one after another in one shell, against a gateway after its first start.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { at, type Json } from '../helpers/client.ts'
import { bearerKey, path, startHub } from '../helpers/hub.ts'
import { runToEnd } from '../helpers/programs.ts'

const guide = readFileSync(path('docs/api.md'), 'utf8')
const PASSWORD = 'A-test-pass1'
/** The placeholders of the guide for values that differ from run to run. */
const printed = { address: 'http://127.0.0.1:3000', password: 'the password that the first start printed' }

interface Block { heading: string, script: string }
const blocks: Block[] = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => ({
  heading: guide.slice(0, match.index).split('\n').filter((line) => line.startsWith('#')).at(-1) ?? '',
  script: match[1] ?? ''
}))

test('the guide has twelve tasks, each with its lines', async () => {
  const headings = guide.split('\n').filter((line) => /^## \d+\. /.test(line))
  assert.deepEqual(headings.map((line) => Number(/\d+/.exec(line)?.[0])), Array.from({ length: 12 }, (_, at) => at + 1))
  assert.deepEqual(blocks.map(({ heading }) => heading), ['# The management API, by example', ...headings])
  for (const { script, heading } of blocks) assert.match(script, /\b(?:curl|api) /, heading)
  assert.equal(guide.split(printed.address).length, 3, 'the address is set at the top, and is the default of the client')
  assert.equal(guide.split(printed.password).length, 2, 'the password is set at the top')
})

test('every block runs as printed', async (t) => {
  // The key that the first start creates.
  const first = bearerKey({ name: 'first key', kind: 'user', owner: 'admin' })
  const hub = await startHub(t, { env: { ADMIN_PASSWORD: PASSWORD }, settings: { mcpServers: {}, bearerKeys: [first] } })
  const script = blocks.map(({ heading, script: lines }) => `echo '== ${heading}'\n${lines}\necho`).join('\n')
    .replaceAll(printed.address, hub.url)
    .replaceAll(printed.password, PASSWORD)
  // npx finds the servers among the packages of the project and downloads nothing.
  const { code, out: output, err: errors } = await runToEnd('sh', ['-eu', '-s'], { cwd: hub.folder, env: { HOME: hub.folder }, input: script })
  assert.equal(code, 0, `a line of docs/api.md failed, after:\n${output}\n${errors}\nThe gateway said:\n${hub.output().slice(-3_000)}`)

  const said = new Map(output.split(/^== /m).slice(1).map((part) => [part.split('\n')[0] ?? '', part.slice(part.indexOf('\n') + 1)]))
  const about = (number: number): string => [...said].find(([heading]) => heading.startsWith(`## ${number}. `))?.[1] ?? ''
  /** The answers of one task, as curl printed them, end to end. */
  const answers = (number: number): Json[] =>
    about(number).split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Json)
  for (let number = 1; number <= 12; number++) {
    if (number !== 10) for (const answer of answers(number)) assert.equal(answer.success, true, JSON.stringify(answer))
  }
  assert.equal(at(answers(1)[0], 'data', 'name'), 'everything')
  assert.equal(at(answers(2)[0], 'data', 'successCount'), 2)
  assert.equal(at(answers(3).at(-1), 'data', 'status'), 'connected')
  assert.deepEqual([at(answers(4)[0], 'data', 'config', 'description'), at(answers(4)[1], 'data', 'name')], ['Issues', 'notes'])
  assert.match(String(at(answers(4)[0], 'data', 'config', 'headers', 'Authorization')), /••••/)
  assert.deepEqual(
    answers(5).map((answer) => [at(answer, 'data', 'enabled'), at(answer, 'data', 'overridden') ?? false]),
    [[false, false], [true, false], [true, true], [true, false]]
  )
  assert.deepEqual(
    (at(answers(6).at(-1), 'data') as Json[]).map(({ name, tools }) => [name, tools]),
    [['everything', ['echo']], ['notes', 'all']]
  )
  assert.deepEqual(
    (at(answers(7).at(-1), 'data') as Json[]).map(({ name, kind }) => [name, kind]),
    [['first key', 'user'], ['laptop', 'system'], ['of ada', 'user'], ['of the web team', 'user']]
  )
  assert.deepEqual(at(answers(7).find(({ data }) => Array.isArray(data)), 'data'), [{ username: 'admin', via: 'owner' }, { username: 'ada', via: '@web' }])
  assert.match(about(8), /"text":"Echo: Hello"/)
  assert.match(about(8), /Bern/)
  assert.match(about(9), /^1mb$/m)
  const audited = (at(answers(10).at(-1), 'data') as Json[]).map(({ entity, name }) => [entity, name])
  assert.deepEqual(audited.slice(0, 2), [['export', 'settings'], ['systemConfig', 'systemConfig']])
  assert.match(about(11), /^ask$/m)
  assert.match(about(11), /Echo: to \[email\]/)
  assert.match(about(11), /It waits for Ada\.[\s\S]*"state":"approved"[\s\S]*The sum of 2 and 3 is 5/)
  const used = at(answers(11).at(-1), 'data') as Json[]
  assert.ok(used.some(({ tool, server }) => tool === 'get-sum' && server === 'everything'))
  assert.deepEqual(answers(12).map(({ data }) => Array.isArray(data) ? data.length : undefined), [undefined, 1, 1, 1, 0, undefined, 0])
  assert.deepEqual(at(answers(12)[3], 'data', 0, 'username'), 'admin')

  const backup = join(hub.folder, 'settings-backup.json')
  assert.equal((await stat(backup)).mode & 0o777, 0o600)
  assert.deepEqual(Object.keys(at(JSON.parse(await readFile(backup, 'utf8')), 'mcpServers') as Json), ['everything', 'issues', 'notes'])
})

// The commands of the README and of the pages that it begins with run as printed, in a folder that holds a clone and nothing else; their
// JSON parses, and their settings files are valid. docs.test.ts tests links and the table of environment variables. Needs a build,
// script(1) of util-linux and, for one test, PostgreSQL.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { Session } from '../helpers/client.ts'
import { database } from '../helpers/database.ts'
import { freePort, path, startHub, until } from '../helpers/hub.ts'
import { runToEnd, startProgram, type Run } from '../helpers/programs.ts'
import { onTerminal, skipWithoutTerminal, type Terminal } from '../helpers/terminal.ts'

const pages = ['README.md', 'docs/getting-started.md', 'docs/clients.md', 'docs/configuration.md']
const readme = readFileSync(path('README.md'), 'utf8')

/** A fenced block. `place`: its document and line; `mark`: the comment on the line before it. */
interface Block { language: string, text: string, place: string, mark: string | undefined }

function blocksOf (name: string): Block[] {
  const markdown = readFileSync(path(name), 'utf8')
  const blocks: Block[] = []
  for (const match of markdown.matchAll(/^(?:<!-- (?<mark>[^\n]+) -->\n)?```(?<language>\w*)\n(?<text>.*?)^```$/gms)) {
    const { mark, language = '', text = '' } = match.groups ?? {}
    blocks.push({ language, text, mark, place: `${name}:${markdown.slice(0, match.index).split('\n').length}` })
  }
  return blocks
}

const blocks = pages.flatMap(blocksOf)
const commands = blocks.filter(({ language }) => language === 'sh' || language === 'bash')
/** True for a block that its mark assigns to another test, or to none. */
const isApart = ({ mark }: Block): boolean => mark !== undefined

/** The placeholders of the pages for what differs from run to run. */
const printedAddress = 'http://127.0.0.1:3000'
const printedPassword = 'the password that the first start printed'
const printedKey = 'the key that the first start printed'

/** Runs lines in a shell, and stops at the first failure. */
const run = async (input: string, cwd: string, env: Record<string, string>): Promise<Run> =>
  await runToEnd('sh', ['-eu', '-s'], { cwd, env, input })

/** A folder as `git clone && npm ci` leaves it. */
async function clone (t: Test): Promise<string> {
  const folder = await temporaryFolder(t)
  for (const name of readdirSync(path(''))) {
    if (!/^(\.git|\.cache|\.tool-hub|mcp_settings\.json.*|data)$/.test(name)) await symlink(path(name), join(folder, name))
  }
  return folder
}

test('every command of these pages is run, or says why not', async () => {
  for (const { mark = '', place } of commands.filter(isApart)) {
    const [, file] = /^pasted[^:]*: (test\/\S+)$/.exec(mark) ?? []
    if (file === undefined) assert.match(mark, /^not run: \w.{10,}/, `${place} gives no reason`)
    else assert.ok(existsSync(path(file)), `${place}: ${file}`)
  }
  assert.deepEqual(commands.filter(({ mark }) => mark?.startsWith('not run')).map(({ text }) => text), ['npm ci && npm test\n'])
  for (const { text, place } of commands.filter(({ text }) => text.includes('curl'))) {
    assert.doesNotMatch(text, /curl -[a-zA-Z]*f/, `${place}: -f hides the reason of a failure`)
  }
  assert.ok(commands.filter((block) => !isApart(block)).length >= 7)
})

test('documents put $smart in single quotes where a shell reads it', async () => {
  for (const name of ['README.md', ...readdirSync(path('docs')).filter((each) => each.endsWith('.md')).map((each) => `docs/${each}`)]) {
    const shell = blocksOf(name).filter(({ language }) => language === 'sh')
    const lines = shell.flatMap(({ text }) => text.split('\n'))
    for (const line of lines.filter((each) => each.includes('$smart'))) assert.match(line, /'[^']*\$smart[^']*'/, `${name}: ${line}`)
  }
  assert.match(readme, /'http:\/\/127\.0\.0\.1:3000\/mcp\/\$smart'/)
})

/** The gateway as the first command of the README starts it, on a terminal. CI has run the first half of that command, which installs. */
async function firstStart (t: Test): Promise<{ url: string, folder: string, terminal: Terminal }> {
  const [{ text = '' } = {}] = commands
  assert.equal(text, 'npm ci && npm start\n')
  assert.ok(existsSync(path('dist/server.js')), 'npm start runs what npm ci builds: npm run build')
  const folder = await clone(t)
  const port = await freePort()
  const terminal = onTerminal(t, text.replace('npm ci && ', 'exec ').trim(), { cwd: folder, env: { HOME: folder, PORT: String(port) } })
  const url = `http://127.0.0.1:${port}`
  t.after(async () => {
    terminal.hangUp()
    await until(async () => await fetch(`${url}/health`).then(() => false, () => true), 'the gateway outlives its terminal')
  })
  await until(() => / call everything echo .*\n/.test(terminal.output()), terminal.output)
  return { url, folder, terminal }
}

test('the commands of the pages run as printed, from the first start on', { skip: skipWithoutTerminal }, async (t) => {
  const begun = Date.now()
  const { url, folder, terminal } = await firstStart(t)
  const [address, , password = '', key = '', snippet] = [
    /^MCP endpoint: +(\S+)$/m, /^API, to try in \/docs: (\S+)$/m, /with password "([^"]+)"/, /^(thk_[0-9a-f]{64})$/m, /^claude mcp add (.*)$/m
  ].map((pattern) => {
    const found = pattern.exec(terminal.output())
    assert.ok(found, `${String(pattern)} in ${terminal.output()}`)
    return found[1]
  })
  assert.equal(address, `${url}/mcp`)
  assert.ok(snippet?.includes(`${url}/mcp`) && snippet.includes(key), snippet)
  const scripts = commands.filter((block) => !isApart(block))
  for (const each of [printedAddress, printedPassword, printedKey]) assert.ok(scripts.some(({ text }) => text.includes(each)), each)
  /** Pastes blocks, one after another in one shell. @returns the output of each */
  const paste = async (pasted: readonly Block[], cwd: string): Promise<string[]> => {
    const script = pasted.map(({ text, place }) => `echo '== ${place}'\n${text}`).join('\necho\n')
      .replaceAll(printedAddress, url).replaceAll(printedPassword, password).replaceAll(printedKey, key)
    const { code, said: output } = await run(script, cwd, { HOME: folder })
    assert.equal(code, 0, `a command of the pages failed, after:\n${output}\nThe gateway said:\n${terminal.output()}`)
    return output.split(/^== \S+:\d+$/m).slice(1).map((text) => text.trim())
  }

  const [called = ''] = await paste(scripts.slice(0, 1), folder)
  t.comment(`from npm start to the answer of the first call: ${((Date.now() - begun) / 1_000).toFixed(1)} s`)
  assert.match(called, /everything is connected, with \d+ tools/)
  const promised = /The answer to the last command is `(.*?)`/.exec(readme)?.[1] ?? ''
  assert.deepEqual(JSON.parse(called.split('\n').at(-1) ?? ''), JSON.parse(promised))

  const [, login = '', added = '', made = '', graph = '', , list = ''] = await paste(scripts.slice(1), await temporaryFolder(t))
  assert.match(login, /"username":"admin"/)
  assert.match(added, /"data":\{"name":"memory","enabled":true,"status":"connecting"/)
  assert.match(added, /"name":"memory","status":"connected","error":null/)
  assert.match(made, /^thk_[0-9a-f]{64}$/)
  assert.match(graph, /"content":\[/)
  const { result } = JSON.parse(list.split('\n').at(-1) ?? '') as { result: { tools: Array<{ name: string }> } }
  assert.deepEqual(result.tools.map(({ name }) => name).sort(), ['memory-read_graph', 'memory-search_nodes'])
})

test('the commands over a database run as printed', async (t) => {
  const { url } = await database(t)
  const block = commands.find(({ text }) => text.includes('npm run db:export'))
  const [start = '', dump = ''] = (block?.text ?? '').replaceAll('postgres://hub:secret@127.0.0.1:5432/hub', url).split('\n')
  const folder = await clone(t)
  const port = await freePort()
  startProgram(t, 'sh', ['-c', start], { cwd: folder, env: { HOME: folder, PORT: String(port) } })
  await until(async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok, 'the gateway is not ready')
  const { code, said: output } = await run(dump, folder, { HOME: folder })
  assert.equal(code, 0, output)
  const { users } = JSON.parse(readFileSync(join(folder, 'backup.json'), 'utf8')) as { users: Array<{ username: string }> }
  assert.deepEqual(users.map(({ username }) => username), ['admin'])
})

test('every JSON block of the pages parses', async () => {
  const json = blocks.filter(({ language }) => language === 'json')
  assert.ok(json.length >= 6)
  for (const { text, place } of json) assert.doesNotThrow(() => { JSON.parse(text) }, place)
})

test('the settings files of docs/configuration.md are valid, and the first one works', async (t) => {
  const [example, ...others] = blocks.filter(({ mark }) => mark === 'settings')
  assert.ok(example && others.length > 0)
  for (const { text } of others) {
    const hub = await startHub(t, { settings: text })
    assert.doesNotMatch(hub.output(), /ignored|cannot be used|is not connected/)
  }
  const hub = await startHub(t, { settings: example.text })
  assert.doesNotMatch(hub.output(), /ignored|cannot be used|is not connected/)
  const session = await Session.open(`${hub.url}/mcp/daily`, { key: 'choose-something-long-and-random' })
  await until(async () => {
    assert.deepEqual((await session.list('tools/list', 'tools')).map(({ name, description }) => [name, description]), [['try-echo', 'Says it again']])
    return true
  }, () => `the group of the example does not list its tool: ${hub.output()}`)
})

test('npm run demo prints a client configuration and a curl line that calls a tool', async (t) => {
  assert.ok(existsSync(path('dist/server.js')), 'the demo runs what npm ci builds: npm run build')
  const folder = await temporaryFolder(t)
  const port = await freePort()
  const { said } = startProgram(t, 'npm', ['run', 'demo'], { env: { HOME: folder, TMPDIR: folder, PORT: String(port) } })
  await until(() => /^curl .+$/m.test(said()), () => `the demo printed no curl line: ${said()}`)
  const configuration: unknown = JSON.parse(/^\{\n.*?^\}$/ms.exec(said())?.[0] ?? '')
  assert.ok(JSON.stringify(configuration).includes(`http://127.0.0.1:${port}/mcp`))
  const { code, out: answer } = await run(/^curl .+$/m.exec(said())?.[0] ?? '', folder, {})
  assert.equal(code, 0, answer)
  const promised = blocks.find(({ language, text }) => language === 'json' && text.includes('Echo: Hello'))
  assert.deepEqual(JSON.parse(answer), JSON.parse(promised?.text ?? ''))
})

// What the README says is what happens: its commands run as printed, its JSON parses, its settings file is taken. Its table of
// environment variables and its links are held by docs.test.ts.
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { freePort, path, startHub, until, type Cleanup } from '../helpers/hub.ts'
import { runToEnd } from '../helpers/programs.ts'
import { temporaryFolder } from '../fakes/store-file.ts'

const readme = readFileSync(path('README.md'), 'utf8')

/** A fenced block. `mark`: the comment on the line before it. */
interface Block { language: string, text: string, line: number, mark: string | undefined }

function blocksOf (markdown: string): Block[] {
  const blocks: Block[] = []
  for (const match of markdown.matchAll(/^(?:<!-- (?<mark>[^\n]+) -->\n)?```(?<language>\w*)\n(?<text>.*?)^```$/gms)) {
    const { mark, language = '', text = '' } = match.groups ?? {}
    blocks.push({ language, text, mark, line: markdown.slice(0, match.index).split('\n').length })
  }
  return blocks
}

const blocks = blocksOf(readme)
const commands = blocks.filter(({ language }) => language === 'sh' || language === 'bash')
const notRun = ({ mark }: Block): boolean => mark?.startsWith('not run: ') === true

/** What stands in the README for what differs from run to run. */
const printedAddress = 'http://127.0.0.1:3000'
const printedPassword = 'the password that the first start printed'

test('every command of the README is run, or says why not', async () => {
  for (const block of commands.filter(notRun)) assert.match(block.mark ?? '', /^not run: \w.{10,}/, `line ${block.line} gives no reason`)
  for (const block of commands.filter(({ text }) => text.includes('curl'))) {
    assert.ok(!notRun(block), `line ${block.line}: curl lines are run`)
  }
  assert.ok(commands.filter((block) => !notRun(block)).length >= 7)
})

/** The gateway as the first line of the README starts it, with all that it prints. Its first half installs, which CI has done. */
async function firstStart (t: Cleanup): Promise<{ url: string, folder: string, output: () => string }> {
  const [{ text = '' } = {}] = commands
  assert.equal(text, 'npm ci && npm start\n')
  const folder = await temporaryFolder(t)
  const port = await freePort()
  const hub = spawn('sh', ['-c', text.replace('npm ci && ', 'exec ')], {
    cwd: path(''),
    env: { PATH: process.env.PATH ?? '', HOME: folder, PORT: String(port), SETTINGS_PATH: join(folder, 'mcp_settings.json') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true
  })
  let output = ''
  for (const stream of [hub.stdout, hub.stderr]) stream.on('data', (chunk) => { output += String(chunk) })
  const closed = new Promise((resolve) => { hub.once('close', resolve) })
  t.after(async () => {
    // As Ctrl-C does it: to the whole group.
    if (hub.pid !== undefined && hub.exitCode === null && hub.signalCode === null) process.kill(-hub.pid, 'SIGINT')
    await closed
  })
  await until(() => / call everything echo .*\n/.test(output), () => output)
  return { url: `http://127.0.0.1:${port}`, folder, output: () => output }
}

test('the commands of the README run as printed, one after another in one shell, from the first start on', async (t) => {
  const hub = await firstStart(t)
  const [address, , password = '', key = '', snippet] = [
    /^MCP endpoint: +(\S+)$/m, /^API, to try in \/docs: (\S+)$/m, /with password "([^"]+)"/, /^(thk_[0-9a-f]{64})$/m, /^claude mcp add (.*)$/m
  ].map((pattern) => {
    const found = pattern.exec(hub.output())
    assert.ok(found, `${String(pattern)} in ${hub.output()}`)
    return found[1]
  })
  assert.equal(address, `${hub.url}/mcp`)
  assert.ok(snippet?.includes(`${hub.url}/mcp`) && snippet.includes(key), snippet)
  assert.ok(readme.includes(printedAddress) && readme.includes(printedPassword))
  // As a person does who reads on while the new server connects.
  const wait = 'until curl -fsS "$HUB/health" | grep -q \'"connected":1\'; do sleep 0.2; done\n'
  const script = commands.filter((block) => !notRun(block))
    .map(({ text, line }) => `echo '== line ${line}'\n${text}${text.includes('"command":"npx"') ? wait : ''}`).join('\necho\n')
    .replaceAll(printedAddress, hub.url).replaceAll(printedPassword, password)
  const { code, said: output } = await runToEnd('sh', ['-eu', '-s'], { input: script, env: { HOME: hub.folder } })
  assert.equal(code, 0, `a command of the README failed, after:\n${output}\nThe gateway said:\n${hub.output()}`)
  const [, answers = ''] = output.split('"username":"admin"')
  assert.match(answers, /"data":\{"name":"everything","enabled":true,"status":"connecting"/)
  assert.match(answers, /^thk_[0-9a-f]{64}$/m)
  assert.match(answers, /"text":"Echo: Hello"/)
  const list = JSON.parse(answers.trim().split('\n').at(-1) ?? '') as { result: { tools: Array<{ name: string }> } }
  assert.deepEqual(list.result.tools.map(({ name }) => name), ['everything-echo', 'everything-get-sum'])
  const call = await fetch(`${hub.url}/api/tools/everything/echo?message=Hello`, { headers: { authorization: `Bearer ${key}` } })
  assert.match(await call.text(), /"text":"Echo: Hello"/, 'by the key that the first start prints')
})

test('every JSON block of the README parses', async () => {
  const json = blocks.filter(({ language }) => language === 'json')
  assert.ok(json.length >= 6)
  for (const { text, line } of json) assert.doesNotThrow(() => { JSON.parse(text) }, `the JSON at line ${line}`)
})

test('the settings file of the README is taken whole', async (t) => {
  const example = blocks.find(({ mark }) => mark === 'settings')
  assert.ok(example)
  const hub = await startHub(t, { settings: example.text })
  assert.doesNotMatch(hub.output(), /ignored|cannot be used|is not connected/)
  const headers = {
    authorization: 'Bearer choose-something-long-and-random',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream'
  }
  const post = async (message: object, session?: string): Promise<Response> =>
    await fetch(`${hub.url}/mcp/daily`, {
      method: 'POST',
      headers: session === undefined ? headers : { ...headers, 'mcp-session-id': session },
      body: JSON.stringify({ jsonrpc: '2.0', ...message })
    })
  const hello = await post({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  })
  assert.equal(hello.status, 200)
  await hello.text()
  const session = hello.headers.get('mcp-session-id') ?? ''
  await post({ method: 'notifications/initialized' }, session)
  await until(async () => {
    const { result } = (await (await post({ id: 2, method: 'tools/list' }, session)).json()) as {
      result: { tools: Array<{ name: string; description: string }> }
    }
    assert.deepEqual(result.tools.map(({ name, description }) => [name, description]), [['try-echo', 'Says it again']])
    return true
  }, () => `the group of the example does not list its tool: ${hub.output()}`)
})

test('what the documents beside the README link to is there', async () => {
  for (const document of ['CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'docs/architecture.md', 'docs/lifecycle.md']) {
    const text = readFileSync(path(document), 'utf8')
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(dirname(path(document)), target)), `${document} links to ${target}`)
    }
  }
})

test('npm run demo prints a client configuration and a curl line that calls a tool', async (t) => {
  assert.ok(existsSync(path('dist/server.js')), 'the demo runs what npm ci builds: npm run build')
  const folder = await temporaryFolder(t)
  const port = await freePort()
  const demo: ChildProcess = spawn('npm', ['run', 'demo'], {
    cwd: path(''),
    env: { PATH: process.env.PATH ?? '', HOME: folder, TMPDIR: folder, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true
  })
  let output = ''
  demo.stdout?.on('data', (chunk) => { output += String(chunk) })
  demo.stderr?.on('data', (chunk) => { output += String(chunk) })
  const closed = new Promise((resolve) => { demo.once('close', resolve) })
  t.after(async () => {
    // As Ctrl-C does it: to the whole group.
    if (demo.pid !== undefined && demo.exitCode === null && demo.signalCode === null) process.kill(-demo.pid, 'SIGINT')
    await closed
  })
  await until(() => /^curl .+$/m.test(output), () => `the demo printed no curl line: ${output}`)
  const configuration: unknown = JSON.parse(/^\{\n.*?^\}$/ms.exec(output)?.[0] ?? '')
  assert.ok(JSON.stringify(configuration).includes(`http://127.0.0.1:${port}/mcp`))
  const { code, said: answer } = await runToEnd('sh', ['-eu', '-s'], { input: /^curl .+$/m.exec(output)?.[0] })
  assert.equal(code, 0, answer)
  const promised = blocks.find(({ language, text }) => language === 'json' && text.includes('Echo: Hello'))
  assert.deepEqual(JSON.parse(answer), JSON.parse(promised?.text ?? ''))
})

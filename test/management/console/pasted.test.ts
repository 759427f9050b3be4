import assert from 'node:assert/strict'
import { test } from 'tap'
import { jsoncToJson } from '../../../schemas/jsonc.ts'
import { parsePastedServers } from '../../../plugins/management/console/pasted/pasted.ts'

/** What becomes of a text: names with their configs. */
const read = (text: string): Array<[name: string, config: unknown]> =>
  parsePastedServers(text).map(({ name, config }) => [name, config])

const memory = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-memory'] }

void test('the configuration of a client, with comments', async () => {
  const text = `\uFEFF{ // Claude Desktop
    "mcpServers": { "b": ${JSON.stringify(memory)}, "1": { "url": "https://mcp.example.com/mcp" }, },
  }`
  assert.deepEqual(read(text), [['b', memory], ['1', { url: 'https://mcp.example.com/mcp' }]])
  assert.deepEqual(read(JSON.stringify({ servers: { a: memory } })), [['a', memory]])
})

void test('what has no effect is named', async () => {
  const twice = parsePastedServers('{"mcpServers":{"a":{"command":"one"},"b":{"command":"b"},"a":{"command":"two"}}}')
  assert.deepEqual(twice.map(({ name, config: { command } }) => [name, command]), [['a', 'two'], ['b', 'b']])
  assert.match(twice[0]?.remarks.join() ?? '', /two members of one name/)
  const [server] = parsePastedServers(JSON.stringify({ mcpServers: { a: { ...memory, autoApprove: ['x'] } } }))
  assert.match(server?.remarks.join() ?? '', /autoApprove/)
})

void test('an address without its scheme is one, and says so; a command stays a command', async () => {
  const urls: ReadonlyArray<readonly [text: string, url: string]> = [
    ['127.0.0.1:9000/mcp', 'http://127.0.0.1:9000/mcp'], ['localhost:9000/mcp', 'http://localhost:9000/mcp'],
    ['[::1]:9000/mcp', 'http://[::1]:9000/mcp'], ['mcp.example.com/mcp', 'https://mcp.example.com/mcp'],
    ['mcp.example.com', 'https://mcp.example.com'], ['mcp.example.com:8443/mcp?key=1', 'https://mcp.example.com:8443/mcp?key=1'],
    ['box:8080', 'http://box:8080'], ['10.0.0.7/sse', 'http://10.0.0.7/sse'], ['hub.local:3000/mcp', 'http://hub.local:3000/mcp']
  ]
  for (const [text, url] of urls) {
    const [server] = parsePastedServers(text)
    assert.equal(server?.config.url, url, text)
    assert.match(server.remarks.join(), /treated as an address/, text)
  }
  for (const text of ['server.py', './mcp.example.com/run', '/usr/bin/server', 'node_modules/.bin/server', 'memory', 'run.sh/x', 'a@1.2', 'npx a.b/c']) {
    const [server] = parsePastedServers(text)
    assert.deepEqual([server?.config.url, typeof server?.config.command], [undefined, 'string'], text)
  }
})

void test('an input that VS Code asks for is a variable with a field', async () => {
  // eslint-disable-next-line no-template-curly-in-string
  const texts = { Authorization: 'Bearer ${input:api-key}', 'X-Zone': '${input:zone}' }
  const [server] = parsePastedServers(JSON.stringify({
    inputs: [{ id: 'zone', description: 'The zone', type: 'promptString', password: false, default: 'eu' }],
    servers: { a: { url: 'https://mcp.example.com/mcp', headers: texts } }
  }))
  // eslint-disable-next-line no-template-curly-in-string
  assert.deepEqual(server?.config.headers, { Authorization: 'Bearer ${API_KEY}', 'X-Zone': '${ZONE}' })
  assert.deepEqual(server.inputs.map(({ key, title, isSecret, fallback }) => [key, title, isSecret, fallback]),
    [['API_KEY', 'api-key', true, undefined], ['ZONE', 'The zone', false, 'eu']])
  assert.deepEqual(server.remarks, [])
})

void test('a large text of comments, quotes and commas without an end takes no longer than its size', async () => {
  for (const part of ['/*', '"\\"', ', ', '{"a":"\\\\"},', '[1,/**/', '//"\n"', '{"1":']) {
    assert.throws(() => parsePastedServers(`{${part.repeat(1_000_000 / part.length)}`), /this is not JSON/, part)
  }
})

void test('a part of such a configuration', async () => {
  assert.deepEqual(read(JSON.stringify(memory)), [['memory', memory]])
  assert.deepEqual(read(JSON.stringify({ notes: memory })), [['notes', memory]])
  assert.deepEqual(read(JSON.stringify({ name: 'mine', url: 'https://x.example/mcp' })), [['mine', { url: 'https://x.example/mcp' }]])
})

void test('an OpenAPI document, and the address of one', async () => {
  const schema = { openapi: '3.1.0', info: { title: 'Pet Store API' }, servers: [{ url: 'https://api.petstore.com/v3' }], paths: {} }
  assert.deepEqual(read(JSON.stringify(schema)), [['pet-store', { type: 'openapi', openapi: { schema } }]])
  const url = 'https://api.petstore.com/v3/openapi.json'
  assert.deepEqual(read(url), [['petstore', { type: 'openapi', openapi: { url } }]])
})

void test('TOML of Codex, and YAML', async () => {
  const codex = '# Codex\nmodel = "gpt"\n\n[mcp_servers.b]\ncommand = "npx"\nargs = ["-y", "@modelcontextprotocol/server-memory"]\n' +
    '\n[mcp_servers."a.b"]\nurl = "https://x.example/mcp"\nbearer_token_env_var = "KEY"\n'
  // eslint-disable-next-line no-template-curly-in-string
  assert.deepEqual(read(codex), [['b', memory], ['a.b', { url: 'https://x.example/mcp', headers: { Authorization: 'Bearer ${KEY}' } }]])
  assert.deepEqual(read('mcpServers:\n  - name: notes\n    command: npx\n    args: [notes]\n'), [['notes', { command: 'npx', args: ['notes'] }]])
  assert.deepEqual(read('openapi: 3.1.0\ninfo: {title: Pet Store}\npaths: {}\n'), [
    ['pet-store', { type: 'openapi', openapi: { schema: { openapi: '3.1.0', info: { title: 'Pet Store' }, paths: {} } } }]
  ])
  // Aliases that multiply, and one that holds itself.
  const bomb = ['a: &a [x, x, x, x, x, x, x, x]', ...'bcdefgh'.split('').map((name, at) => `${name}: &${name} [${Array(8).fill(`*${'abcdefg'[at]}`).join(', ')}]`)].join('\n')
  const long = 'x'.repeat(30_000)
  const aliases = (count: number): string => Array(count).fill('*a').join(', ')
  const repeated = `a: &a ${long}\nmcpServers:\n  s:\n    command: y\n    args: [${aliases(100)}]\n`
  const names = `a: &a {${long}: 1}\nb: [${aliases(100)}]\n`
  for (const text of [bomb, 'a: &a\n  b: *a\n', repeated, names]) assert.throws(() => parsePastedServers(text), /larger than its text/)
  const few = read(`a: &a [${'x'.repeat(300)}]\nmcpServers:\n  s: {command: y, args: *a}\n  t: {command: y, args: *a}\n`)
  assert.equal(few.length, 2, 'aliases that repeat little are fine')
})

void test('an address', async () => {
  assert.deepEqual(read('https://mcp.notion.com/mcp'), [['notion', { url: 'https://mcp.notion.com/mcp' }]])
  assert.deepEqual(read('http://127.0.0.1:9/sse'), [['local', { type: 'sse', url: 'http://127.0.0.1:9/sse' }]])
})

void test('command lines', async () => {
  assert.deepEqual(read('$ npx -y @modelcontextprotocol/server-memory'), [['memory', memory]])
  assert.deepEqual(read('TOKEN="a b" X=1 uvx \\\n  mcp-server-time --local-timezone=\'Europe/Berlin\''), [
    ['time', { command: 'uvx', args: ['mcp-server-time', '--local-timezone=Europe/Berlin'], env: { TOKEN: 'a b', X: '1' } }]
  ])
  assert.deepEqual(read('docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:latest').map(([name]) => name), ['github'])
  assert.deepEqual(read('node /srv/notes/dist/index.js\n# a comment\n\n/opt/bin/tickets-mcp --stdio').map(([name]) => name), ['notes', 'tickets'])
})

void test('commands of clients', async () => {
  assert.deepEqual(read('claude mcp add memory -- npx -y @modelcontextprotocol/server-memory'), [['memory', memory]])
  assert.deepEqual(read('claude mcp add -s user -e KEY=v -e B=w airtable -- npx -y airtable-mcp -e mine'), [
    ['airtable', { command: 'npx', args: ['-y', 'airtable-mcp', '-e', 'mine'], env: { KEY: 'v', B: 'w' } }]
  ])
  assert.deepEqual(read('claude mcp add --transport http stripe https://mcp.stripe.com --header "Authorization: Bearer x:y"'), [
    ['stripe', { url: 'https://mcp.stripe.com', headers: { Authorization: 'Bearer x:y' } }]
  ])
  assert.deepEqual(read('claude mcp add --transport=sse asana https://mcp.asana.com/sse'), [
    ['asana', { type: 'sse', url: 'https://mcp.asana.com/sse' }]
  ])
  assert.deepEqual(read('codex mcp add docs --url https://docs.example.com/mcp'), [['docs', { url: 'https://docs.example.com/mcp' }]])
  assert.deepEqual(read(`claude mcp add-json -s user memory '${JSON.stringify(memory)}'`), [['memory', memory]])
  assert.deepEqual(read(`code --add-mcp '${JSON.stringify({ name: 'memory', ...memory })}'`), [['memory', memory]])
})

void test('two servers of one name get two names', async () => {
  assert.deepEqual(read('npx a-mcp\nnpx a-mcp').map(([name]) => name), ['a', 'a-2'])
  assert.deepEqual(read('a\na-2\na\na\na-2\na').map(([name]) => name), ['a', 'a-2', 'a-3', 'a-4', 'a-2-2', 'a-5'])
})

void test('a text with too many servers is refused, as lines and as JSON', async () => {
  const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `s${at}`)
  for (const textOf of [
    (count: number) => 'a\n'.repeat(count),
    (count: number) => JSON.stringify({ mcpServers: Object.fromEntries(many(count).map((name) => [name, memory])) })
  ]) {
    assert.equal(parsePastedServers(textOf(500)).length, 500)
    assert.throws(() => parsePastedServers(textOf(501)), /contains 501 servers: paste at most 500/)
  }
})

void test('a long line is read in one pass', async () => {
  const long = 1_000_000
  assert.throws(() => parsePastedServers(`[${'a'.repeat(long)}`), /not JSON/)
  assert.equal(parsePastedServers(`npx x/y${'@'.repeat(long)}`)[0]?.name, 'y')
  assert.equal(parsePastedServers(`npx ${'@'.repeat(long)}/y`)[0]?.name, 'y')
})

void test('a text that is none of these says what is missing', async () => {
  for (const [text, sentence] of [
    ['  ', /paste/], ['{"a": 1}', /contains no servers/], ['{"mcpServers": {"a": 1}}', /"a" is not an object/], ['{"mcpServers": ', /not JSON/],
    ['npx "x', /closing quote/], ['claude mcp add', /needs a name/], ['A=1', /no command/], ['a:\n  - x', /this YAML contains no servers/], ['[mcp_servers.a]\nx', /not TOML/],
    ["code --add-mcp '[]'", /JSON object/], ['{"mcpServers": {}}', /there are no servers in this JSON/]
  ] as const) assert.throws(() => parsePastedServers(text), sentence, text)
})

void test('JSON with comments: comments and trailing commas become spaces, and nothing else changes', async () => {
  const cases: ReadonlyArray<readonly [text: string, json: string]> = [
    ['{"a":1,}', '{"a":1 }'], ['[1, /* x, */ ]', '[1           ]'], ['[1, // ]\n]', '[1      \n]'],
    ['{"a": "//, /* ,}"}', '{"a": "//, /* ,}"}'], ['{"a":"\\"//"}', '{"a":"\\"//"}'], ['[1,,]', '[1, ]'], ['[1] /', '[1] /'],
    ['[1 /* open', '[1 /* open'], ['["open\n,]', '["open\n,]'], ['/*a\nb*/[]', '   \n   []']
  ]
  for (const [text, json] of cases) {
    assert.equal(jsoncToJson(text), json.padEnd(text.length), text)
  }
})

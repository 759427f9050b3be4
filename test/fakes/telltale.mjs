// A stdio MCP server that prints all that it was given, arguments and environment, to stderr: at its start, and at every call; line by
// line, as JSON, and LONG behind so much else that the line is cut within it.
// Tools: `fine`, `fails` (a JSON-RPC error), `logs` (a log message, a progress and its answer), `hangs`, `crashes`.
// TELLTALE=dies: it exits before it has answered anything.
const tell = () => {
  process.stderr.write(`argv ${JSON.stringify(process.argv)}\n`)
  const { PATH, HOME, TOOL_HUB_CHILD, ...rest } = process.env
  for (const [name, value] of Object.entries(rest)) process.stderr.write(`${name}=${value}\n`)
  process.stderr.write(`${JSON.stringify(rest)}\n`)
  // The last ten lines are told, 500 characters of each.
  for (const length of [8_192, 500]) process.stderr.write(`${'.'.repeat(length - 25)}${process.env.LONG}\n`)
  process.stderr.write(`${process.env.KEY}\n`)
}
const line = (message) => { process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`) }

tell()
if (process.env.TELLTALE === 'dies') process.exit(3)

const object = { type: 'object' }
const listed = ['fine', 'fails', 'logs', 'hangs', 'crashes'].map((name) => ({ name, description: name, inputSchema: object }))

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, logging: {} },
    serverInfo: { name: 'telltale', version: '1.0.0' }
  }),
  'tools/list': () => ({ tools: listed }),
  ping: () => ({}),
  'logging/setLevel': () => ({})
}

function call (id, name) {
  tell()
  if (name === 'hangs') return
  if (name === 'crashes') process.exit(7)
  if (name === 'fails') { line({ id, error: { code: -32000, message: 'it failed' } }); return }
  if (name === 'logs') line({ method: 'notifications/message', params: { level: 'error', data: 'a line of its log' } })
  line({ id, result: { content: [{ type: 'text', text: name }] } })
}

let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  for (const each of lines) {
    if (each.trim() === '') continue
    const { id, method, params } = JSON.parse(each)
    if (id === undefined) continue
    if (method === 'tools/call') call(id, params.name)
    else if (Object.hasOwn(answers, method)) line({ id, result: answers[method](params) })
    else line({ id, error: { code: -32601, message: 'Method not found' } })
  }
})
process.stdin.on('end', () => { process.exit(0) })

/* eslint no-template-curly-in-string: off -- configs hold them */
// Three servers that want values of their users: in a header, in the environment and an argument, and in the address.
import bcrypt from 'bcryptjs'
import { KEY, OTHER, otherKey, Session, text, type Json } from '../helpers/client.ts'
import { bearerKey, until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { startUpstream, tool, type Call } from './fault-http.ts'
import { loggedIn, managed } from './replica.ts'

/** A stdio server whose one tool tells its arguments and a variable, which it also prints to stderr. */
const teller = `
process.stdin.setEncoding('utf8')
process.stderr.write('started with ' + process.env.TOKEN + '\\n')
let rest = ''
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\\n')
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    const seen = { args: process.argv.slice(1), token: process.env.TOKEN, pid: process.pid }
    const result = method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'teller', version: '1' } }
      : method === 'tools/list' ? { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] }
        : { content: [{ type: 'text', text: JSON.stringify(seen) }] }
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
  }
})
`
export const users = ['ann', 'bob', 'cleo'] as const
export const password = 'Same-1234'
export const keyOf = { ann: KEY, bob: OTHER, cleo: `thk_${'c'.repeat(64)}`, nobody: `thk_${'e'.repeat(64)}` } as const

/** The settings of ann, an admin, of bob and cleo, with a key each, and of a system key that is nobody's. */
export function settingsOf (mcpServers: Json): Json {
  const hash = bcrypt.hashSync(password, 4)
  const createdAt = '2026-11-01T00:00:00.000Z'
  return {
    mcpServers,
    users: users.map((username) => ({ username, password: hash, createdAt, isAdmin: username === 'ann' })),
    bearerKeys: [
      ...users.map((owner, n) => otherKey({
        id: `3333333${n}-3333-4333-8333-333333333333`, name: owner, kind: 'user', owner, token: keyOf[owner]
      })),
      bearerKey({ id: '44444444-4444-4444-8444-444444444444', name: 'nobody', token: keyOf.nobody })
    ]
  }
}

export const admin = { authorization: `Bearer ${keyOf.nobody}` }
export const as = async (hub: Pick<Hub, 'url'>, user: typeof users[number]): Promise<Record<string, string>> =>
  await loggedIn(hub, user, password)

const token = { name: 'TOKEN', title: 'Your token' }

/** The config of a stdio server that tells what it was started with. */
export const stdioConfig = (more: Json = {}): Json => ({
  command: process.execPath,
  args: ['-e', teller, '--', '--token=${user.TOKEN}', '${user.NOTE}'],
  env: { TOKEN: '${user.TOKEN}' },
  userVariables: [token, { name: 'NOTE', required: false }],
  owner: 'ann',
  visibility: 'public',
  ...more
})

export interface ValueServers { readonly configs: Record<'header' | 'stdio' | 'address', Json>, readonly seen: string[] }

/** Starts the two that are reached by HTTP. `seen`: the header and the path of each request, as they came. */
export async function startValueServers (t: Cleanup): Promise<ValueServers> {
  const seen: string[] = []
  const tells = (what: (call: Call) => string) => ({
    tools: [tool('tell')],
    on: (call: Call): Json | undefined => call.method === 'tools/call'
      ? { content: [{ type: 'text', text: what(call) }] }
      : undefined
  })
  const header = await startUpstream(t, {
    ...tells(({ headers }) => `${headers.authorization} ${headers['x-note'] ?? 'no note'}`),
    raw: ({ headers }) => { seen.push(String(headers.authorization)); return false }
  })
  const address = await startUpstream(t, {
    ...tells(({ res }) => res.req.url ?? ''),
    raw: ({ url }) => { seen.push(url ?? ''); return false }
  })
  const shared = { type: 'streamable-http', owner: 'ann', visibility: 'public' }
  return {
    seen,
    configs: {
      header: {
        ...shared,
        url: header.url,
        headers: { Authorization: 'Bearer ${user.TOKEN}', 'X-Note': '${user.NOTE}' },
        userVariables: [token, { name: 'NOTE', required: false }]
      },
      stdio: stdioConfig(),
      address: { ...shared, url: `${address.url}/\${user.TOKEN}?key=\${user.TOKEN}&note=\${user.NOTE}`, userVariables: [token, { name: 'NOTE', required: false }] }
    }
  }
}

type User = typeof users[number]
export const give = async (hub: Hub, user: User, values: Json, name = 'header'): Promise<void> => {
  await managed(hub, 'PUT', `/servers/${name}/my-variables`, { values }, await as(hub, user))
}

/** What a call of `tell` answers a user, or why it does not. */
export async function tell (hub: Hub, user: User, name = 'header'): Promise<string> {
  const session = await Session.open(`${hub.url}/mcp/${name}`, { key: keyOf[user] })
  const { result, error } = await session.request('tools/call', { name: 'tell', arguments: {} })
  return error?.message ?? text(result)
}

export const isConnected = async (hub: Hub, name = 'header'): Promise<void> => {
  await until(async () => (await managed(hub, 'GET', `/servers/${name}`, undefined, admin)).status === 'connected', hub.output)
}

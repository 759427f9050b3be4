// `npm run demo`: starts the built gateway with three servers from npm and a key. Ctrl-C stops it.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)
const server = (name) => join(dirname(require.resolve(`@modelcontextprotocol/server-${name}/package.json`)), 'dist/index.js')

const folder = mkdtempSync(join(tmpdir(), 'tool-hub-demo-'))
const token = `thk_${randomBytes(32).toString('hex')}`
const port = process.env.PORT ?? '3000'
writeFileSync(join(folder, 'hello.txt'), 'Hello from the filesystem server.\n')
writeFileSync(
  join(folder, 'mcp_settings.json'),
  JSON.stringify(
    {
      mcpServers: {
        everything: {
          command: process.execPath,
          args: [server('everything'), 'stdio'],
          description: 'A little of everything that MCP has'
        },
        filesystem: { command: process.execPath, args: [server('filesystem'), folder], description: 'Files in a temporary folder' },
        memory: {
          command: process.execPath,
          args: [server('memory')],
          env: { MEMORY_FILE_PATH: join(folder, 'memory.json') },
          description: 'A knowledge graph'
        }
      },
      bearerKeys: [{ id: randomUUID(), name: 'demo', token, kind: 'system', accessType: 'all', enabled: true }]
    },
    null,
    2
  ),
  { mode: 0o600 }
)

// In a process group of its own, so that Ctrl-C reaches this script only, which then stops the gateway gracefully.
const hub = spawn(process.execPath, [join(root, 'dist/server.js')], {
  env: { ...process.env, PORT: port, SETTINGS_PATH: join(folder, 'mcp_settings.json') },
  stdio: ['ignore', 'inherit', 'inherit'],
  detached: true
})
hub.once('exit', (code) => { rmSync(folder, { recursive: true, force: true }); process.exitCode = code ?? 1 })
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => { hub.kill('SIGTERM') })

const base = `http://127.0.0.1:${port}${process.env.BASE_PATH ?? ''}`
for (let tries = 0; tries < 300 && hub.exitCode === null; tries++) {
  const health = await fetch(`${base}/health`).then(async (reply) => await reply.json(), () => undefined)
  if (health?.servers.connected === 3) break
  await new Promise((resolve) => { setTimeout(resolve, 100) })
}
if (hub.exitCode === null) {
  console.log(`
Paste this into your agent's MCP configuration (Claude, Cursor, VS Code …):

${JSON.stringify({ mcpServers: { 'tool-hub': { type: 'http', url: `${base}/mcp`, headers: { Authorization: `Bearer ${token}` } } } }, null, 2)}

Or call a tool right now:

curl -s ${base}/api/tools/call/everything -H 'Authorization: Bearer ${token}' -H 'content-type: application/json' -d '{"toolName":"echo","arguments":{"message":"Hello"}}'
`)
}

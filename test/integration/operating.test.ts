// The commands of docs/operating.md run as printed, one after another in one shell, in a folder that holds a clone and nothing else,
// beside a gateway that runs there. Needs a build.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { firstWordsIn, freePort, path, until } from '../helpers/hub.ts'
import { runToEnd, startProgram } from '../helpers/programs.ts'

const guide = readFileSync(path('docs/operating.md'), 'utf8')
const scripts = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, script = '']) => script)

test('the commands of docs/operating.md run as printed', async (t) => {
  assert.equal(scripts.length, 4)
  assert.doesNotMatch(guide, /<!-- not run/)
  const folder = await temporaryFolder(t)
  const clone = join(folder, 'clone')
  for (const name of ['clone', 'bin', 'backups', 'try', 'try-database']) await mkdir(join(folder, name))
  for (const name of ['package.json', 'dist', 'cli', 'assets', 'db', 'node_modules']) await symlink(path(name), join(clone, name))
  // As `npm install -g` leaves it.
  await symlink(path('dist/cli/main.js'), join(folder, 'bin/tool-hub'))
  const port = await freePort()
  const env = { PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`, HOME: folder, PORT: String(port) }
  startProgram(t, 'npm', ['start'], { cwd: clone, env })
  const firstWords = (): string => firstWordsIn(join(clone, '.tool-hub'))
  await until(() => firstWords().includes(' call everything '), firstWords)

  const places: ReadonlyArray<[printed: string | RegExp, here: string]> = [
    ['pglite:///tmp/try/db', `pglite://${join(folder, 'try-database/db')}`], [/DATA_DIR=\/tmp\/try(?= ENC)/, `DATA_DIR=${join(folder, 'try-database')}`],
    [/\/tmp\/try/g, join(folder, 'try')], [/\/backups/g, join(folder, 'backups')], [/<file>/g, `${join(folder, 'backups')}/*.thb`],
    ['ENCRYPTION_KEY=…', `ENCRYPTION_KEY=${'5a'.repeat(32)}`]
  ]
  const script = places.reduce((text, [printed, here]) => text.replace(printed, here), scripts.map((each, at) => `echo '== ${at}'\n${each}`).join('\n'))
  const { code, said: output } = await runToEnd('sh', ['-eu', '-s'], { cwd: clone, env, input: script })
  assert.equal(code, 0, output)

  const [, reset = ''] = output.split(/^== \d$/m)
  const password = reset.trim().split('\n').find((line) => /^\S{12,}$/.test(line)) ?? ''
  const login = await fetch(`http://127.0.0.1:${port}/api/auth/login`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username: 'admin', password })
  })
  assert.equal(login.status, 200, reset)
  assert.match(readdirSync(join(folder, 'backups')).join(), /^tool-hub-\d{4}-\d\d-\d\d\.thb$/)
  const restored = JSON.parse(readFileSync(join(folder, 'try/mcp_settings.json'), 'utf8')) as { users: Array<{ username: string }> }
  assert.deepEqual(restored.users.map(({ username }) => username), ['admin'])
  assert.ok(existsSync(join(folder, 'try-database/db/PG_VERSION')))
})

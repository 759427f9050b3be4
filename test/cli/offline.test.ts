// The command line with the gateway down works on the settings that are there, and makes none: a mistyped path or DB_URL leaves no trace.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'tap'
import { connectToManagementApi } from '../../cli/connect.ts'
import { CommandError, exitCodes } from '../../cli/errors.ts'
import { createOfflineApiClient } from '../../cli/offline.ts'
import { gatewayPathsOf } from '../../cli/gateway-paths.ts'
import { FileLock } from '../../db/file-lock.ts'
import { storageLocation, writeAccessFile } from '../../plugins/base/config/local-access.ts'
import { readEnv } from '../../schemas/read-env.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { emptyFolder } from '../helpers/database.ts'
import { listen } from '../helpers/listen.ts'

const opened = async (environment: Record<string, string>): Promise<void> => {
  const env = readEnv(environment)
  const api = await createOfflineApiClient(env, gatewayPathsOf(env))
  await api.close()
}
const isUnreachable = (pattern: RegExp) => (error: unknown): boolean =>
  error instanceof CommandError && error.exitCode === exitCodes.unreachable && pattern.test(error.message)

test('a settings file or an embedded database that is not there is told, and not made', async (t) => {
  const folder = await temporaryFolder(t)
  const settings = join(folder, 'mcp_settings.json')
  await assert.rejects(opened({ SETTINGS_PATH: join(folder, 'typo/other.json') }), isUnreachable(/There is no settings file .*other\.json.*--config/))
  await writeFile(settings, JSON.stringify({ mcpServers: { a: { command: 'x' } } }))
  const typo = join(folder, 'typo')
  await assert.rejects(opened({ SETTINGS_PATH: settings, DB_URL: `pglite://${typo}` }),
    isUnreachable(/There is no Tool-Hub database at .*typo, and none was created.*DB_URL.*tool-hub serve/))
  assert.deepEqual(readdirSync(folder), ['mcp_settings.json'])
  await opened({ SETTINGS_PATH: settings })
})

test('the credential of a gateway over other settings is not used', async (t) => {
  const folder = await temporaryFolder(t)
  const health = createServer((_request, response) => { response.end(JSON.stringify({ servers: {} })) })
  const port = await listen(t, health)
  const url = `http://127.0.0.1:${port}`
  const [ours, other] = [join(folder, 'mcp_settings.json'), join(folder, 'other.json')]
  const former = { ...process.env }
  t.after(() => { process.env = former })
  const urlFor = async (settings: string, dbUrl = ''): Promise<string | undefined> => {
    Object.assign(process.env, { SETTINGS_PATH: settings, DB_URL: dbUrl })
    return (await connectToManagementApi({ needsGateway: true })).url
  }
  const write = (dbUrl?: string): void => {
    writeAccessFile(join(folder, '.tool-hub'), { url, token: 't', pid: process.pid, ...storageLocation(ours, dbUrl) })
  }
  await mkdir(join(folder, '.tool-hub'))
  write()
  await symlink(ours, join(folder, 'link.json'))
  await writeFile(ours, '{}')
  assert.equal(await urlFor(ours), url)
  assert.equal(await urlFor(join(folder, 'link.json')), url)
  await assert.rejects(urlFor(other), isUnreachable(/No gateway runs with .*other\.json, which does not exist\. The one at .* uses /))
  await assert.rejects(urlFor(ours, 'postgres://a:secret@db/hub'), isUnreachable(/No gateway runs with the database of DB_URL/))
  write('postgres://a:secret@db/hub?sslmode=require')
  assert.equal(await urlFor(ours, 'postgres://b:other@db/hub'), url)
  assert.equal(await urlFor(ours), url, 'the gateway over this file, wherever it keeps its settings')
  await assert.rejects(urlFor(ours, 'postgres://a:secret@db/second'), (error: unknown) =>
    isUnreachable(/uses db\/hub/)(error) && !/secret/.test(String(error)))
  assert.doesNotMatch(await readFile(join(folder, '.tool-hub/command-line.json'), 'utf8'), /secret/)
})

test('while a gateway starts, that is said', async (t) => {
  const folder = await temporaryFolder(t)
  const [settings, data] = [join(folder, 'mcp_settings.json'), join(folder, 'pg')]
  await writeFile(settings, '{}')
  await cp(await emptyFolder(), data, { recursive: true })
  for (const [path, env] of [[settings, {}], [data, { DB_URL: `pglite://${data}` }]] as const) {
    const lock = new FileLock(path)
    await lock.acquire()
    const said = new RegExp(`Process ${process.pid} uses .*, and .*command-line\\.json does not belong to it: a gateway seems to be starting\\. Try again .*DATA_DIR`)
    await assert.rejects(opened({ SETTINGS_PATH: settings, ...env }), isUnreachable(said))
    const io = { env: { SETTINGS_PATH: settings, ...env }, cwd: folder, stderr: process.stderr }
    await assert.rejects(connectToManagementApi({ needsGateway: true }, io), isUnreachable(said))
    lock.release()
  }
})

// The command line with the gateway down works on the settings that are there, and makes none: a mistyped path or DB_URL leaves no trace.
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { placesOf } from '../../cli/backup/places.ts'
import { Failure, exits } from '../../cli/failure.ts'
import { offlineApi } from '../../cli/offline.ts'
import { readEnv } from '../../schemas/env.ts'
import { temporaryFolder } from '../fakes/store-file.ts'
import { emptyFolder } from '../helpers/database.ts'

const opened = async (environment: Record<string, string>): Promise<void> => {
  const env = readEnv(environment)
  const api = await offlineApi(env, placesOf(env))
  await api.close()
}
const isUnreachable = (pattern: RegExp) => (error: unknown): boolean =>
  error instanceof Failure && error.exit === exits.unreachable && pattern.test(error.message)

test('a settings file or an embedded database that is not there is told, and not made', async (t) => {
  const folder = await temporaryFolder(t)
  const settings = join(folder, 'mcp_settings.json')
  await assert.rejects(opened({ SETTINGS_PATH: join(folder, 'typo/other.json') }), isUnreachable(/There is no settings file .*other\.json.*--config/))
  await writeFile(settings, JSON.stringify({ mcpServers: { a: { command: 'x' } } }))
  const typo = join(folder, 'typo')
  await assert.rejects(
    opened({ SETTINGS_PATH: settings, DB_URL: `pglite://${typo}` }),
    isUnreachable(/There is no Tool-Hub database at .*typo, and none was made.*DB_URL.*tool-hub serve/)
  )
  assert.deepEqual(readdirSync(folder), ['mcp_settings.json'])
  await opened({ SETTINGS_PATH: settings })
})

test('an embedded database that holds nothing yet takes nothing of the settings file', async (t) => {
  const folder = await temporaryFolder(t)
  const [settings, data] = [join(folder, 'mcp_settings.json'), join(folder, 'pg')]
  await writeFile(settings, JSON.stringify({ mcpServers: { a: { command: 'x' } } }))
  await cp(await emptyFolder(), data, { recursive: true })
  const open = async (): Promise<void> => { await opened({ SETTINGS_PATH: settings, DB_URL: `pglite://${data}` }) }
  await assert.rejects(open(), isUnreachable(/There is no Tool-Hub database at/))
  await assert.rejects(open(), isUnreachable(/There is no Tool-Hub database at/), 'the first one has closed it')
  assert.equal(existsSync(join(folder, '.tool-hub')), false)
})

// The long run of what test/integration/store.test.ts does briefly: 100 rounds of kill -9, 3,000 random commands. `npm run soak`.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { bounded } from '../contracts/store.ts'
import { killRounds } from '../contracts/store-kill.ts'
import { modelRun } from '../contracts/store-model.ts'
import { openFile, temporaryFolder } from '../fakes/store-file.ts'

const rounds = 100
const commands = 3_000
const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

test('long runs on a settings file', async (t) => {
  t.comment(`${commands} random commands, seed ${seed} (TEST_SEED=${seed} runs the same)`)
  await modelRun(commands, seed, async () => await bounded(openFile))

  const path = join(await temporaryFolder(t), 'mcp_settings.json')
  await writeFile(path, '{"mcpServers":{}}')
  const read = async (): Promise<Set<string>> =>
    new Set(Object.keys((JSON.parse(await readFile(path, 'utf8')) as { mcpServers: object }).mcpServers))
  const end = new AbortController()
  let reads = 0
  const reader = (async () => { for (; !end.signal.aborted; reads++) await read() })()
  const acknowledged = await killRounds(t, path, rounds, read).finally(() => { end.abort() })
  await reader
  t.comment(`${rounds} kills: ${acknowledged} changes acknowledged, none lost; the file was whole at each of ${reads} reads`)
})

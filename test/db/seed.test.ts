// The first content of an empty database.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { parseSnapshot } from '../../db/document.ts'
import { parseSettings } from '../../db/json/parse.ts'
import { readSeed } from '../../db/seed.ts'

test('entries that are ignored go into the database unchanged, and it is told how they are corrected', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-seed-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const path = join(folder, 'mcp_settings.json')
  const messagesOf = async (settings: object): Promise<readonly string[]> => {
    await writeFile(path, JSON.stringify(settings))
    const { document, messages } = await readSeed(path)
    assert.deepEqual({ ...document, mcpServers: 0 }, { ...settings, mcpServers: 0 })
    return messages
  }
  const groups = [{ id: 'a', name: 'a', servers: [] }]
  const how = /The database also contains the ignored entries .*`npm run db:export <file>`, correct the file, `npm run db:import <file> --/
  // The API corrects a server that cannot be used.
  assert.doesNotMatch((await messagesOf({ mcpServers: { odd: { url: 7 } }, groups })).join('\n'), how)
  assert.match((await messagesOf({ mcpServers: {}, groups: [...groups, { id: 'b', name: 'b', servers: 'all' }] })).join('\n'), how)
  assert.match((await messagesOf({ mcpServers: {}, groups: [...groups, ...groups] })).join('\n'), how)
})

test('a server that a settings text has twice is told of', async () => {
  const textOf = (servers: string): Buffer => Buffer.from(`{"groups":[{"a":1}],"mcpServers":{${servers}},"x":{"b":1,"b":2}}`)
  const warningsOf = (servers: string): readonly string[] => parseSnapshot(parseSettings(textOf(servers), 'a.json'), 1).snapshot.warnings ?? []
  const once = '"b":{"command":"x","env":{"b":"1"}}'
  const [warning, ...others] = warningsOf(`"a":{"command":"node"},${once},"\\u0061":{"command":"npx"}`).filter((each) => /more than once/.test(each))
  assert.equal(warning, 'server "a" occurs more than once: only the last entry applies, the others are ignored')
  assert.deepEqual(others, [])
  assert.deepEqual(warningsOf(`"a":{"command":"node"},${once}`).filter((each) => /more than once/.test(each)), [])
})

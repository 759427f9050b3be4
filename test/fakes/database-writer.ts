// As store-writer.ts, on a database: its URL is the argument.
import { openStorage } from '../../db/open.ts'
import { writeOnWord } from './endless-writes.ts'
import { vault } from './replica.ts'

const [dbUrl = ''] = process.argv.slice(2)

writeOnWord(async (warn) => {
  const settingsPath = '/nonexistent/mcp_settings.json'
  return (await openStorage({ settingsPath, dbUrl, startupTimeout: 60_000, vault: await vault(), warn, info: () => {} })).store
}, (key) => ({ env: { SECRET: key } }))

// As store-writer.ts, on a database: its URL is the argument.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { openStorage } from '../../db/open.ts'
import { Conflict } from '../../db/store.ts'
import { vault } from './replica.ts'

const [dbUrl = ''] = process.argv.slice(2)
// Synchronous: a line that was handed over survives the kill.
const say = (line: string): void => { writeSync(1, `${line}\n`) }

createInterface(process.stdin).once('line', (line) => { void write(line.split(' ')[1] ?? '') })

async function write (prefix: string): Promise<void> {
  const { store } = await openStorage({
    settingsPath: '/nonexistent/mcp_settings.json',
    dbUrl,
    startupTimeout: 60_000,
    vault: await vault(),
    warn: (sentence) => { say(`warn ${sentence}`) },
    info: () => {}
  })
  let snapshot = await store.load()
  let count = 0
  const writer = async (): Promise<void> => {
    for (;;) {
      const key = `${prefix}-${count++}`
      say(`try ${key}`)
      for (;;) {
        try {
          const next = await store.commit(
            [{ entity: 'mcpServers', key, value: { command: 'x'.repeat(200), env: { SECRET: key } } }],
            snapshot.version
          )
          if (next.version > snapshot.version) snapshot = next
          break
        } catch (error) {
          if (!(error instanceof Conflict)) { say(`error ${String(error)}`); return }
          await new Promise((resolve) => { setImmediate(resolve) })
        }
      }
      say(`ok ${key}`)
    }
  }
  say(`loaded ${snapshot.problems.join(' ')}`)
  await Promise.all([writer(), writer(), writer(), writer()])
}

say('ready')

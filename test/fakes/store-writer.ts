// A process that writes to a settings file without end, four changes at a time, and says of each one when it begins (`try`) and
// when it was acknowledged (`ok`). It starts at the word `go <prefix>` on stdin, and is meant to be killed.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { JsonFileStore } from '../../db/json/file.ts'
import { Conflict } from '../../db/store.ts'

const [path = ''] = process.argv.slice(2)
// Synchronous: a line that was handed over survives the kill.
const say = (line: string): void => { writeSync(1, `${line}\n`) }

createInterface(process.stdin).once('line', (line) => { void write(line.split(' ')[1] ?? '') })

async function write (prefix: string): Promise<void> {
  const store = new JsonFileStore(path, (sentence) => { say(`warn ${sentence}`) })
  let snapshot = await store.load()
  let count = 0
  const writer = async (): Promise<void> => {
    for (;;) {
      const key = `${prefix}-${count++}`
      say(`try ${key}`)
      for (;;) {
        try {
          const next = await store.commit([{ entity: 'mcpServers', key, value: { command: 'x'.repeat(200) } }], snapshot.version)
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

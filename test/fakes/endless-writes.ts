// What the processes that write without end share: four changes at a time, and of each one they say when it begins (`try`) and when it was
// acknowledged (`ok`). They start at the word `go <prefix>` on stdin.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ConflictError, type Store } from '../../db/store.ts'

type Open = (warn: (sentence: string) => void) => Promise<Store>

// Synchronous: a line that was handed over survives the kill.
const say = (line: string): void => { writeSync(1, `${line}\n`) }

/** @param more further members of a server's config */
export function writeOnWord (open: Open, more: (key: string) => object = () => ({})): void {
  createInterface(process.stdin).once('line', (line) => { void write(line.split(' ')[1] ?? '', open, more) })
  say('ready')
}

async function write (prefix: string, open: Open, more: (key: string) => object): Promise<void> {
  const store = await open((sentence) => { say(`warn ${sentence}`) })
  let snapshot = await store.load()
  let count = 0
  const writer = async (): Promise<void> => {
    for (;;) {
      const key = `${prefix}-${count++}`
      say(`try ${key}`)
      for (;;) {
        try {
          const next = await store.commit([{ entity: 'mcpServers', key, value: { command: 'x'.repeat(200), ...more(key) } }], snapshot.version)
          if (next.version > snapshot.version) snapshot = next
          break
        } catch (error) {
          if (!(error instanceof ConflictError)) { say(`error ${String(error)}`); return }
          await new Promise((resolve) => { setImmediate(resolve) })
        }
      }
      say(`ok ${key}`)
    }
  }
  say(`loaded ${snapshot.problems.join(' ')}`)
  await Promise.all([writer(), writer(), writer(), writer()])
}

import assert from 'node:assert/strict'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { tsServer, type Cleanup } from '../helpers/hub.ts'

/** A writer that has loaded its code and waits for the word. */
export interface Writer { child: ChildProcessWithoutNullStreams, lines: string[], said: (start: string) => Promise<void> }

/** Starts a writer on a settings file (test/fakes/store-writer.ts), or on what another one writes to. */
export function startWriter (t: Cleanup, target: string, script = 'test/fakes/store-writer.ts'): Writer {
  const { command, args } = tsServer(script, target)
  const child = spawn(command, args)
  t.after(() => { child.kill('SIGKILL') })
  child.stderr.pipe(process.stderr)
  const lines: string[] = []
  const reader = createInterface(child.stdout).on('line', (line) => { lines.push(line) })
  const said = async (start: string): Promise<void> => {
    while (!lines.some((line) => line.startsWith(start))) await once(reader, 'line')
  }
  return { child, lines, said }
}

/**
 * Rounds of a process that writes without end and is killed in the middle (SIGKILL).
 * @param target what it writes to: the settings file, or what the script takes
 * @param names the servers that are stored, now
 * @returns how many changes were acknowledged over all rounds
 */
export async function killRounds (
  t: Cleanup,
  target: string,
  rounds: number,
  names: () => Promise<Set<string>>,
  script?: string
): Promise<number> {
  const acknowledged = new Set<string>()
  const unknown = new Set<string>()
  // Two processes ahead, since loading the code takes longer than a round.
  const start = (): Writer => startWriter(t, target, script)
  const waiting = [start(), start()]
  for (let round = 0; round < rounds; round++) {
    const { child, lines, said } = waiting.shift() ?? start()
    await said('ready')
    if (round + waiting.length + 1 < rounds) waiting.push(start())
    child.stdin.write(`go r${round}\n`)
    await said('ok')
    // In the middle of what it writes: after another number of changes in each round.
    while (lines.filter((line) => line.startsWith('ok')).length < 1 + 2 * (round % 20)) await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'close')
    for (const line of lines) {
      const [word, key = ''] = line.split(' ')
      assert.notEqual(word, 'error', line)
      if (word === 'try') unknown.add(key)
      if (word === 'ok') {
        unknown.delete(key)
        acknowledged.add(key)
      }
    }
    const stored = await names()
    for (const key of acknowledged) assert.ok(stored.has(key), `round ${round}: ${key} was acknowledged and is lost`)
    for (const key of stored) assert.ok(acknowledged.has(key) || unknown.has(key), `round ${round}: ${key} was never written`)
  }
  return acknowledged.size
}

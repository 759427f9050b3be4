import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/** Whether there is a person at a terminal to ask. */
export const isAttended = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** Asks a person on the terminal. @param isSecret what is typed is not shown */
export async function ask (question: string, isSecret: boolean): Promise<string> {
  let isMuted = false
  const output = new Writable({ write: (chunk, _encoding, done) => { if (!isMuted) process.stderr.write(chunk); done() } })
  const readline = createInterface({ input: process.stdin, output, terminal: true })
  try {
    const answer = readline.question(`${question}: `)
    isMuted = isSecret
    const value = await answer
    if (isSecret) process.stderr.write('\n')
    return value
  } finally {
    readline.close()
  }
}

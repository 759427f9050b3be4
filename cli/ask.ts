import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Io } from './io.ts'

/** Whether there is a person at a terminal to ask. */
export const isAttended = ({ stdin, stderr }: Io): boolean => stdin.isTTY === true && stderr.isTTY === true

/** All that comes from a pipe. */
export const piped = async ({ stdin }: Io): Promise<string> => await text(stdin)

/** Asks a person on the terminal. @param isSecret what is typed is not shown */
export async function ask ({ stdin, stderr }: Io, question: string, isSecret: boolean): Promise<string> {
  let isMuted = false
  const output = new Writable({ write: (chunk, _encoding, done) => { if (!isMuted) stderr.write(String(chunk)); done() } })
  const readline = createInterface({ input: stdin, output, terminal: true })
  try {
    const answer = readline.question(`${question}: `)
    isMuted = isSecret
    const value = await answer
    if (isSecret) stderr.write('\n')
    return value
  } finally {
    readline.close()
  }
}

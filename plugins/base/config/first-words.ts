import { randomBytes } from 'node:crypto'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Writable } from 'node:stream'

interface FirstWordsOptions {
  /** Where a person reads; undefined: there is no terminal. */
  terminal: Pick<Writable, 'write'> | undefined
  dataDir: string
  /** Makes that folder, where it is missing. @throws Error with a sentence */
  makeFolder: () => void
  /** Tells of the file, once it is there. */
  named: (path: string) => void
}

const heading = 'What the first start of Tool-Hub tells, once. Delete this file when you have taken what you need.\n'

/**
 * Tells what a first start has to tell, with secrets in it: on the terminal, else in a file of DATA_DIR for its owner only. A log is kept
 * and passed on, and its lines are JSON.
 */
export class FirstWords {
  readonly #options: FirstWordsOptions
  #path: string
  #text = heading

  constructor (options: FirstWordsOptions) {
    this.#options = options
    this.#path = join(options.dataDir, 'first-start.txt')
  }

  /** Whether what was told cannot be taken back. */
  get isTerminal (): boolean { return this.#options.terminal !== undefined }

  /** @throws Error with a sentence when nobody could read it */
  async tell (text: string): Promise<void> {
    const { terminal } = this.#options
    if (terminal) {
      await new Promise<void>((resolve, reject) => {
        terminal.write(text, (error) => { if (error) reject(new Error(`The terminal takes no text (${error.message}).`)); else resolve() })
      })
      return
    }
    const isFirst = this.#text === heading
    if (isFirst) this.#path = unusedPath(this.#path)
    this.#write(this.#text + text)
    this.#text += text
    if (isFirst) this.#options.named(this.#path)
  }

  /** Takes back what was told of an admin that was not made. */
  retract (): void {
    if (this.#text !== heading) rmSync(this.#path, { force: true })
    this.#text = heading
  }

  #write (text: string): void {
    this.#options.makeFolder()
    const temp = `${this.#path}.${randomBytes(6).toString('hex')}`
    try {
      writeFileSync(temp, text, { flag: 'wx', mode: 0o600, flush: true })
      renameSync(temp, this.#path)
    } finally {
      rmSync(temp, { force: true })
    }
  }
}

/** The path, or with a number in it where an earlier start has left a file there that nobody has read yet. */
function unusedPath (path: string): string {
  let free = path
  for (let number = 2; existsSync(free); number++) free = path.replace(/(-\d+)?\.txt$/, `-${number}.txt`)
  return free
}

import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { errorCode } from '../../../db/errors.ts'
import { snippetsText } from './client-snippets.ts'
import { replaceFile } from './local-access.ts'

/** Quotes a text as one word for a POSIX shell, if necessary. */
export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * Returns the shell command that starts the CLI, from any folder. It contains the path of the CLI, since another
 * package in a registry may have the same name.
 * @param script the script that this process runs
 */
export function cliCommand (script = resolve(process.argv[1] ?? '')): string {
  if (/^server\.[jt]s$/.test(basename(script))) {
    const built = join(dirname(script), 'cli/main.js')
    const source = join(dirname(script), 'cli/main.ts')
    const tsx = join(dirname(script), 'node_modules/tsx/dist/loader.mjs')
    return existsSync(built) ? `node ${shellQuote(built)}` : `node --import ${shellQuote(tsx)} ${shellQuote(source)}`
  }
  return basename(script).endsWith('.js') ? `node ${shellQuote(script)}` : shellQuote(script)
}

/**
 * Returns the beginning of the text that the first start gives to the operator: the addresses of the gateway, and how
 * the first admin logs in.
 * @param base the URL of the gateway. `admin`: `password` is undefined if ADMIN_PASSWORD is set. `place`: the settings
 * file or database, which stores a hash of the password
 */
export function firstStartText (
  { base, admin, place }: { base: string, admin: { username: string, password?: string }, place: string }
): string {
  const { username, password } = admin
  const sentence = password === undefined
    ? `The first admin is "${username}", with the password of ADMIN_PASSWORD.`
    : `The first admin is "${username}" with password "${password}". It is shown only once; ` +
      `${place} keeps a hash of it.`
  return `\nMCP endpoint:        ${base}/mcp\nAPI, to try in /docs: ${base}/docs\n\n${sentence}\n`
}

/**
 * Returns the text that the first start gives to the operator when the gateway is ready; empty if there is nothing to
 * say. It is plain text even if the log is JSON, so that people can copy from it.
 * @param key a new key for agents; undefined if there already are keys
 * @param addWith the command that starts the CLI; undefined if there already are servers
 * @param welcome the link for choosing a password; undefined if there is none
 */
export function nextStepsText (
  { url, key, addWith, welcome }: {
    url: string, key: string | undefined, addWith: string | undefined, welcome?: string | undefined
  }
): string {
  const lines: string[] = []
  if (welcome !== undefined) {
    lines.push(
      '', 'Open the console and choose your own password. The link works once, within 15 minutes:', '', welcome
    )
  }
  if (key !== undefined) {
    lines.push(
      '', 'A key for your agents, shown only once. It gives access to MCP, but not to the management API:', '', key, '',
      'Connect a client with it:', '', snippetsText({ url, key })
    )
  }
  if (addWith !== undefined) {
    const add = `${addWith} add everything --wait -- npx -y @modelcontextprotocol/server-everything`
    const call = `${addWith} call everything echo message=Hello`
    lines.push('', 'Add a first server, and call a tool, in another terminal:', '', `${add} && ${call}`, '')
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

interface FirstStartNoticeOptions {
  /** Undefined if the process has no terminal. */
  terminal: Pick<Writable, 'write'> | undefined
  dataDir: string
  /** Creates `dataDir` if it is missing. @throws Error with a sentence */
  makeFolder: () => void
}

const heading = 'The credentials of the first start of Tool-Hub. Delete this file when you no longer need it.\n'

/**
 * Delivers the text of a first start, which contains secrets: to the terminal or, without a terminal, to a file in
 * DATA_DIR that only its owner can read. The text does not go to the log, which is stored and forwarded.
 */
export class FirstStartNotice {
  readonly #options: FirstStartNoticeOptions
  #path: string
  #text = heading

  constructor (options: FirstStartNoticeOptions) {
    this.#options = options
    this.#path = join(options.dataDir, 'first-start.txt')
  }

  /** Whether the text goes to a terminal, from which it cannot be retracted. */
  get isTerminal (): boolean { return this.#options.terminal !== undefined }

  /** The path of the file with the text; undefined if there is none. */
  get file (): string | undefined { return this.#text === heading ? undefined : this.#path }

  /** Writes more text. @throws Error if the terminal or the file cannot be written to */
  async write (text: string): Promise<void> {
    const { terminal } = this.#options
    if (terminal) {
      await new Promise<void>((resolve, reject) => {
        terminal.write(text, (error) => {
          if (error) {
            reject(new Error(`The terminal cannot be written to (${error.message}).`))
          } else resolve()
        })
      })
      return
    }
    this.#options.makeFolder()
    const isFirst = this.file === undefined
    if (isFirst) this.#path = createUnusedFile(this.#path)
    try {
      replaceFile(this.#path, this.#text + text)
    } catch (error) {
      if (isFirst) rmSync(this.#path, { force: true })
      throw error
    }
    this.#text += text
  }

  /** Removes the file that `write` has written. To be called if the admin in the text could not be stored. */
  retract (): void {
    if (this.file !== undefined) rmSync(this.file, { force: true })
    this.#text = heading
  }
}

/**
 * Creates an empty file that did not exist: with a number if an earlier start, or another replica, left a file.
 * @returns its path
 */
function createUnusedFile (path: string): string {
  for (let number = 2, unused = path; ; number++) {
    try {
      writeFileSync(unused, '', { flag: 'wx', mode: 0o600 })
      return unused
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    unused = path.replace(/(-\d+)?\.txt$/, `-${number}.txt`)
  }
}

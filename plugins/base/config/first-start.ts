import { existsSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { snippetsText } from './client-snippets.ts'
import { replaceFile } from './local-file.ts'

/** A text as one word of a shell. */
export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * The command line as it can be pasted into a shell, in any folder. Never by its bare name: a registry may have another
 * program of that name.
 * @param script the script of this process
 */
export function commandLine (script = resolve(process.argv[1] ?? '')): string {
  if (/^server\.[jt]s$/.test(basename(script))) {
    const built = join(dirname(script), 'cli/main.js')
    const source = join(dirname(script), 'cli/main.ts')
    const tsx = join(dirname(script), 'node_modules/tsx/dist/loader.mjs')
    return existsSync(built) ? `node ${shellQuote(built)}` : `node --import ${shellQuote(tsx)} ${shellQuote(source)}`
  }
  return basename(script).endsWith('.js') ? `node ${shellQuote(script)}` : shellQuote(script)
}

/**
 * The first lines of a first start, before anything else can fail.
 * @param place where a hash of the password is kept
 */
export function firstLines (
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
 * The lines that follow once the gateway is ready. They are plain text even where the log is JSON, so that they can be
 * pasted.
 * @param key undefined: there are keys already
 * @param addWith the command line, where there are no servers yet
 * @param welcome the link to choose a password by; undefined: there is none
 */
export function furtherLines (
  { url, key, addWith, welcome }: {
    url: string, key: string | undefined, addWith: string | undefined, welcome?: string | undefined
  }
): string {
  const lines: string[] = []
  if (welcome !== undefined) {
    lines.push('', 'Open the console, and choose your own password. The link works once, for 15 minutes:', '', welcome)
  }
  if (key !== undefined) {
    lines.push(
      '', 'A key for your agents, shown only once. It opens MCP, and not the management API:', '', key, '',
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

interface FirstWordsOptions {
  /** Undefined: there is no terminal. */
  terminal: Pick<Writable, 'write'> | undefined
  dataDir: string
  /** Makes that folder, where it is missing. @throws Error with a sentence */
  makeFolder: () => void
  /** Called with the path of the file, once it is written. */
  named: (path: string) => void
}

const heading = 'What the first start of Tool-Hub tells, once. Delete this file when you have taken what you need.\n'

/**
 * The text of a first start, which holds secrets: written to the terminal, else to a file of DATA_DIR for its owner
 * only. It does not go to the log, which is kept and passed on.
 */
export class FirstWords {
  readonly #options: FirstWordsOptions
  #path: string
  #text = heading

  constructor (options: FirstWordsOptions) {
    this.#options = options
    this.#path = join(options.dataDir, 'first-start.txt')
  }

  /** Whether the text goes to a terminal, from which nothing can be taken back. */
  get isTerminal (): boolean { return this.#options.terminal !== undefined }

  /** @throws Error with a sentence when nobody could read it */
  async tell (text: string): Promise<void> {
    const { terminal } = this.#options
    if (terminal) {
      await new Promise<void>((resolve, reject) => {
        terminal.write(text, (error) => {
          if (error) {
            reject(new Error(`The terminal takes no text (${error.message}).`))
          } else resolve()
        })
      })
      return
    }
    const isFirst = this.#text === heading
    if (isFirst) this.#path = unusedPath(this.#path)
    this.#options.makeFolder()
    replaceFile(this.#path, this.#text + text)
    this.#text += text
    if (isFirst) this.#options.named(this.#path)
  }

  /** Removes the file: the admin was not stored. */
  retract (): void {
    if (this.#text !== heading) rmSync(this.#path, { force: true })
    this.#text = heading
  }
}

/** A path without a file, with a number in it where an earlier start has left a file that nobody has read yet. */
function unusedPath (path: string): string {
  let free = path
  for (let number = 2; existsSync(free); number++) free = path.replace(/(-\d+)?\.txt$/, `-${number}.txt`)
  return free
}

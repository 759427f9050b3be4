import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { withoutMark } from '../../../protocol/text.ts'
import { readEnv, secretNames, type Env } from '../../../schemas/env.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Max size of a file that holds a secret, in bytes. */
const maxSecretFile = 64 * 1024

/**
 * Reads the environment by its schema, and secrets also from the files that `<NAME>_FILE` names, as containers mount them.
 * @throws Error that names the variable and what to set, and holds nothing of a secret
 */
export const readEnvironment = (environment: Environment): Env =>
  readEnv({ ...environment, ...Object.fromEntries(secretNames.map((name) => [name, secretOf(name, environment)])) })

/** A secret from its variable, or from its file, without a byte-order mark, and without a line break at the end. @throws Error */
function secretOf (name: string, environment: Environment): string | undefined {
  const [text, path = ''] = [environment[name], environment[`${name}_FILE`]]
  if (path === '') return text
  if (text !== undefined && text !== '') throw new Error(`${name} and ${name}_FILE are both set. Set one of them.`)
  const secret = withoutMark(contentOf(path, name)).replace(/\r?\n$/, '')
  if (secret.trim() === '') throw new Error(`The file that ${name}_FILE names is empty.`)
  return secret
}

/** The text of a file that holds a secret, of which no more than the limit is read. @throws Error without path and text */
function contentOf (path: string, name: string): string {
  let file: number | undefined
  try {
    // Without waiting: a FIFO that nobody writes to would hold the start up.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(file)
    if (!stat.isFile() && !stat.isDirectory()) {
      throw new Error(`What ${name}_FILE names is no file, but a device or a pipe. Name a file that holds the secret.`)
    }
    const bytes = Buffer.alloc(maxSecretFile + 1)
    let [length, read] = [0, -1]
    while (read !== 0 && length < bytes.length) {
      read = readSync(file, bytes, length, bytes.length - length, null)
      length += read
    }
    if (length > maxSecretFile) throw new Error(`The file that ${name}_FILE names is too large for a secret.`)
    return bytes.toString('utf8', 0, length)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    // Without the path: somebody may have put the secret itself there.
    throw new Error(
      `The file that ${name}_FILE names cannot be read (${String(error.code)}). Check the path, and that this user may read the file.`
    )
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { withoutBom } from '../../../protocol/text.ts'
import type { ProcessUser } from '../../../protocol/transports/started-process.ts'
import { readEnv } from '../../../schemas/read-env.ts'
import { secretVariableNames, type Env } from '../../../schemas/env.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Max size of a file that contains a secret, in bytes. */
const maxSecretFile = 64 * 1024

/**
 * Validates the environment variables, and converts them to their types. A secret may also be in a file, whose path is
 * in `<NAME>_FILE`: container platforms mount secrets as files.
 * @throws Error that names the variable and says what to set; it contains no part of a secret
 */
export const readEnvironment = (environment: Environment): Env =>
  readEnv({
    ...environment,
    ...Object.fromEntries(secretVariableNames.map((name) => [name, readSecret(name, environment)]))
  })

/**
 * Reads a secret from its variable, or from its file without a byte-order mark and a trailing line break.
 * @returns undefined if neither is set
 * @throws Error with a sentence
 */
function readSecret (name: string, environment: Environment): string | undefined {
  const [text, path = ''] = [environment[name], environment[`${name}_FILE`]]
  if (path === '') return text
  if (text !== undefined && text !== '') throw new Error(`${name} and ${name}_FILE are both set. Set one of them.`)
  const secret = withoutBom(readSecretFile(path, name)).replace(/\r?\n$/, '')
  if (secret.trim() === '') throw new Error(`The file that ${name}_FILE names is empty.`)
  return secret
}

/** Reads a file that contains a secret. @throws Error that shows neither the path nor the text */
function readSecretFile (path: string, name: string): string {
  let file: number | undefined
  try {
    // O_NONBLOCK: opening a FIFO without a writer would block the start.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(file)
    if (!stat.isFile() && !stat.isDirectory()) {
      throw new Error(`${name}_FILE names a device or a pipe. Name a regular file that contains the secret.`)
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
    // The message omits the path, which may be the secret itself by mistake.
    throw new Error(
      `The file that ${name}_FILE names cannot be read (${String(error.code)}). Check the path, and that this user ` +
      'may read the file.'
    )
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** What `findChildUser` reads from the system. Tests replace it. */
interface UserSources {
  /** The uid of this process; undefined on systems without uids (Windows). */
  uid: number | undefined
  /** The text of /etc/passwd. */
  passwd: string
}

/** The highest id of a user or group: ids have 32 bits, and the highest value means "no change" (chown(2)). */
const maxId = 2 ** 32 - 2

const systemSources = (): UserSources => ({ uid: process.getuid?.(), passwd: readPasswd() })

function readPasswd (): string {
  try {
    return readFileSync('/etc/passwd', 'utf8')
  } catch {
    return ''
  }
}

/**
 * Finds the user that child processes run as, from CHILD_USER: a name, `uid` or `uid:gid`. The processes do not get the
 * user's supplementary groups.
 * @param text CHILD_USER
 * @returns undefined if CHILD_USER is not set
 * @throws Error with a sentence if this process does not run as root, if there is no such user, if the user is root, or
 * if an id is too large
 */
export function findChildUser (
  text: string | undefined, { uid: own, passwd } = systemSources()
): ProcessUser | undefined {
  if (text === undefined) return undefined
  if (own !== 0) {
    throw new Error(
      'CHILD_USER requires that root starts the gateway: no other user can start a process as another user. Unset it.'
    )
  }
  const [name = '', group] = text.split(':')
  const entries = passwd.split('\n').map((line) => line.split(':'))
  const [known, , uid = name, gid = uid, , home = '/'] =
    entries.find((entry) => entry[0] === name || entry[2] === name) ?? []
  if (!/^[0-9]+$/.test(uid)) throw new Error(`CHILD_USER: there is no user ${JSON.stringify(name)} in /etc/passwd.`)
  const ids = { uid: Number(uid), gid: Number(group ?? gid) }
  if (ids.uid === 0) {
    throw new Error(
      `CHILD_USER=${text} is root: child processes would have all rights of the gateway. Name ` +
      'another user, or unset it.'
    )
  }
  if (Math.max(ids.uid, ids.gid) > maxId) {
    throw new Error(`CHILD_USER=${text}: the ids of users and groups are at most ${maxId}.`)
  }
  // The home of a system user may not exist, but a child process needs a working directory.
  return { ...ids, home: existsSync(home) ? home : '/', name: known ?? uid }
}

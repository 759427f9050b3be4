import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { withoutMark } from '../../../protocol/text.ts'
import type { ProcessUser } from '../../../protocol/transports/started-process.ts'
import { readEnv } from '../../../schemas/read-env.ts'
import { secretNames, type Env } from '../../../schemas/env.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Max size of a file that holds a secret, in bytes. */
const maxSecretFile = 64 * 1024

/**
 * Reads the environment by its schema, and secrets also from the files that `<NAME>_FILE` names, as containers mount
 * them.
 * @throws Error that names the variable and what to set, and holds nothing of a secret
 */
export const readEnvironment = (environment: Environment): Env =>
  readEnv({ ...environment, ...Object.fromEntries(secretNames.map((name) => [name, secretOf(name, environment)])) })

/**
 * A secret from its variable, or from its file, without a byte-order mark, and without a line break at the end.
 * @throws Error
 */
function secretOf (name: string, environment: Environment): string | undefined {
  const [text, path = ''] = [environment[name], environment[`${name}_FILE`]]
  if (path === '') return text
  if (text !== undefined && text !== '') throw new Error(`${name} and ${name}_FILE are both set. Set one of them.`)
  const secret = withoutMark(contentOf(path, name)).replace(/\r?\n$/, '')
  if (secret.trim() === '') throw new Error(`The file that ${name}_FILE names is empty.`)
  return secret
}

/** The text of a file that holds a secret. @throws Error without path and text */
function contentOf (path: string, name: string): string {
  let file: number | undefined
  try {
    // Without waiting: opening a FIFO that nobody writes to would block the start.
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
    // Without the path, which may be the secret itself by mistake.
    throw new Error(
      `The file that ${name}_FILE names cannot be read (${String(error.code)}). Check the path, and that this user ` +
      'may read the file.'
    )
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Where a user is looked up, and the user of this process. */
interface UserSources {
  /** The uid of this process; undefined: the system has none (Windows). */
  uid: number | undefined
  /** The text of /etc/passwd. */
  passwd: string
}

/** The highest id of a user or group: they have 32 bits, and the highest number stands for none (chown(2)). */
const highestId = 2 ** 32 - 2

const system = (): UserSources => ({ uid: process.getuid?.(), passwd: readPasswd() })

function readPasswd (): string {
  try {
    return readFileSync('/etc/passwd', 'utf8')
  } catch {
    return ''
  }
}

/**
 * The user that children run as, from CHILD_USER: a name, `uid` or `uid:gid`. Children do not get the user's
 * supplementary groups.
 * @throws Error with a sentence when this process does not run as root, when there is no such user, and when the user
 *   is root
 */
export function findChildUser (text: string | undefined, { uid: own, passwd } = system()): ProcessUser | undefined {
  if (text === undefined) return undefined
  if (own !== 0) {
    throw new Error('CHILD_USER needs a gateway that is started by root: no other user can start a process as ' +
      'somebody else. Unset it.')
  }
  const [name = '', group] = text.split(':')
  const entries = passwd.split('\n').map((line) => line.split(':'))
  const [known, , uid = name, gid = uid, , home = '/'] =
    entries.find((entry) => entry[0] === name || entry[2] === name) ?? []
  if (!/^[0-9]+$/.test(uid)) throw new Error(`CHILD_USER: there is no user ${JSON.stringify(name)} in /etc/passwd.`)
  const ids = { uid: Number(uid), gid: Number(group ?? gid) }
  if (ids.uid === 0) {
    throw new Error(
      `CHILD_USER=${text} is root: children would run as the gateway does, and could read all that it can. Name ` +
      'another user, or unset it.'
    )
  }
  if (Math.max(ids.uid, ids.gid) > highestId) {
    throw new Error(`CHILD_USER=${text}: the ids of users and groups end at ${highestId}.`)
  }
  // The home of some users does not exist, and a child needs a working directory.
  return { ...ids, home: existsSync(home) ? home : '/', name: known ?? uid }
}

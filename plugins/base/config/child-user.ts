import { existsSync, readFileSync } from 'node:fs'
import type { ProcessUser } from '../../../protocol/transports/started-process.ts'

/** Where a user is looked up, and who runs the gateway. */
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
 * The user that children run as, from CHILD_USER: a name, `uid` or `uid:gid`. Its further groups are not given to children.
 * @throws Error with a sentence when this process is not root's, when there is no such user, and when it is root
 */
export function findChildUser (text: string | undefined, { uid: own, passwd } = system()): ProcessUser | undefined {
  if (text === undefined) return undefined
  if (own !== 0) {
    throw new Error('CHILD_USER needs a gateway that is started by root: no other user can start a process as somebody else. Unset it.')
  }
  const [name = '', group] = text.split(':')
  const entries = passwd.split('\n').map((line) => line.split(':'))
  const [known, , uid = name, gid = uid, , home = '/'] = entries.find((entry) => entry[0] === name || entry[2] === name) ?? []
  if (!/^[0-9]+$/.test(uid)) throw new Error(`CHILD_USER: there is no user ${JSON.stringify(name)} in /etc/passwd.`)
  const ids = { uid: Number(uid), gid: Number(group ?? gid) }
  if (ids.uid === 0) {
    throw new Error(
      `CHILD_USER=${text} is root: children would run as the gateway does, and could read all that it can. Name another user, or unset it.`
    )
  }
  if (Math.max(ids.uid, ids.gid) > highestId) throw new Error(`CHILD_USER=${text}: the ids of users and groups end at ${highestId}.`)
  // Some users have a home that is not there, and a child must run somewhere.
  return { ...ids, home: existsSync(home) ? home : '/', name: known ?? uid }
}

import { randomBytes } from 'node:crypto'
import type { User } from '../../../schemas/settings.ts'
import type { Passwords } from '../../base/secrets/index.ts'
import type { Settings } from '../../settings/index.ts'
import { defaultOwner, passwordWeaknesses } from './rules.ts'

/** The admin created by a first start. `password`: the generated password; undefined if the operator gave one. */
export interface FirstAdmin { username: string, password?: string }

/**
 * Creates the first admin, unless there are users already.
 * @param givenPassword the password; undefined to generate one
 * @param announce informs the operator before the admin is stored; if it rejects, no admin is stored
 * @returns undefined if this process has created no admin
 */
export async function createFirstAdmin (
  settings: Settings,
  passwords: Passwords,
  warn: (sentence: string) => void,
  givenPassword: string | undefined,
  announce?: (admin: FirstAdmin) => Promise<void>
): Promise<FirstAdmin | undefined> {
  if (settings.current.users.size > 0) return undefined
  const weak = givenPassword === undefined ? [] : passwordWeaknesses(givenPassword)
  if (weak.length > 0) {
    warn(`The password of the first admin (ADMIN_PASSWORD) is weak: change it soon. ${weak.join(' ')}`)
  }
  const password = givenPassword ?? randomBytes(12).toString('base64url')
  const admin: User = {
    username: defaultOwner,
    password: await passwords.hash(password),
    isAdmin: true,
    createdAt: new Date().toISOString()
  }
  const first = { username: defaultOwner, ...(givenPassword === undefined ? { password } : {}) }
  const { storeProblem: problem } = settings
  if (announce && problem !== undefined) throw new Error(problem)
  await announce?.(first)
  const { users } = await settings
    .change(({ users }) => (users.size > 0 ? [] : [{ entity: 'users', key: admin.username, value: admin }]))
  // Another replica may have created the admin first, with another password.
  const isOurs = users.get(defaultOwner)?.password === admin.password
  return isOurs ? first : undefined
}

import { createHmac } from 'node:crypto'
import { accountMarkOf } from '../../plugins/identity/users/account.ts'
import { shared } from '../fakes/replica.ts'

/** A login token. @param secret that of the replicas where none is given */
export function tokenOf (user: { username: string, password?: string, createdAt?: string }, secret = shared.JWT_SECRET): string {
  const now = Math.floor(Date.now() / 1_000)
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head =
    `${part({ alg: 'HS256', typ: 'JWT' })}.` +
    `${part({ sub: user.username, mark: accountMarkOf(user), iat: now, exp: now + 3_600, iss: 'tool-hub', aud: 'tool-hub-management' })}`
  return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`
}

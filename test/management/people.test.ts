// Who uses a server, as its owner is told.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { AccessOverview } from '../../plugins/management/people.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { snapshotOf } from '../helpers/snapshot.ts'

test('an owner who is no admin sees of those to whom a server is public the ones who have used it', async () => {
  const current = snapshotOf({
    users: ['bob', 'carol', 'dora'], admins: ['root'], servers: { s: { url: 'https://x.example', owner: 'bob', visibility: 'public' } }
  })
  const lastUsedAt = '2026-11-20T09:00:00.000Z'
  const unused = {} as ConstructorParameters<typeof AccessOverview>[0]
  const people = new AccessOverview({
    ...unused, settings: { current }, lastUses: async () => new Map([['dora', Date.parse(lastUsedAt)]])
  })
  const seenBy = async (username: string, isAdmin = false): Promise<unknown> => {
    const principal: Principal = { key: username, kind: 'user', user: username, username, isAdmin }
    return (await people.usersOf(principal, 's')).map((user) => Object.values(user))
  }
  const [owner, user] = [['bob', 'owner'], ['dora', 'public', lastUsedAt]]
  assert.deepEqual(await seenBy('bob'), [owner, user])
  const everybody = await seenBy('root', true) as unknown[][]
  assert.deepEqual(everybody.map(([name]) => name).sort(), ['bob', 'carol', 'dora', 'root'])
})

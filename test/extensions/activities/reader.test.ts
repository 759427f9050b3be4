import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Activities } from '../../../db/ports/activities.ts'
import { ActivityReader } from '../../../plugins/extensions/activities/reader.ts'
import type { Principal } from '../../../plugins/settings/access/view.ts'

test('a principal without a username gets no filter values of other users', async () => {
  const values = { servers: ['issues'], tools: ['search'], groups: [], usernames: ['ada'], keyNames: ['laptop'] }
  const store = { listFilterValues: async () => values } as unknown as Activities
  const reader = new ActivityReader(store, () => undefined)
  const admin: Principal = { key: 'key 1', kind: 'system-key', user: 'key 1', isAdmin: true }
  assert.deepEqual(await reader.filterValues(admin), values)
  const none = { servers: [], tools: [], groups: [], usernames: [], keyNames: [] }
  assert.deepEqual(await reader.filterValues({ ...admin, kind: 'user-key', team: 'ops', isAdmin: false }), none)
})

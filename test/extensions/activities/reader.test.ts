import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Activities } from '../../../db/ports/activities.ts'
import { ActivityReader } from '../../../plugins/extensions/activities/reader.ts'
import type { Principal } from '../../../plugins/settings/access/view.ts'
import { until } from '../../helpers/hub.ts'

test('a principal without a username gets no filter values of other users', async () => {
  const values = { servers: ['issues'], tools: ['search'], groups: [], usernames: ['ada'], keyNames: ['laptop'] }
  const store = { listFilterValues: async () => values } as unknown as Activities
  const reader = new ActivityReader(store, () => undefined)
  const admin: Principal = { key: 'key 1', kind: 'system-key', user: 'key 1', isAdmin: true }
  assert.deepEqual(await reader.filterValues(admin), values)
  const none = { servers: [], tools: [], groups: [], usernames: [], keyNames: [] }
  assert.deepEqual(await reader.filterValues({ ...admin, kind: 'user-key', team: 'ops', isAdmin: false }), none)
})

test('pages are read one at a time for each caller', async () => {
  const open: Array<() => void> = []
  const list = async (): Promise<unknown> => {
    await new Promise<void>((resolve) => { open.push(resolve) })
    return { activities: [], total: 0, approximate: false }
  }
  const reader = new ActivityReader({ list } as unknown as Activities, () => undefined)
  const admin = (key: string): Principal => ({ key, kind: 'system-key', user: key, isAdmin: true })
  const pages = ['a', 'a', 'b'].map(async (key) => await reader.list(admin(key), {}, 1, 100))
  await until(() => open.length === 2)
  open.shift()?.()
  await pages[0]
  await until(() => open.length === 2)
  for (const release of open) release()
  await Promise.all(pages)
})

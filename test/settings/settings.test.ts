import assert from 'node:assert/strict'
import { test } from 'tap'
import { StorageError, type Snapshot, type Store } from '../../db/store.ts'
import { Settings } from '../../plugins/settings/settings.ts'

test('a write that the disk does not take: the HTTP status that it is answered with', async () => {
  const snapshot: Snapshot = {
    version: 1,
    servers: new Map(),
    groups: new Map(),
    keys: new Map(),
    users: new Map(),
    system: {},
    problems: []
  }
  for (const [error, status] of [
    [new StorageError('full', true), 507],
    [new StorageError('EIO', false, true), 507],
    [new StorageError('read-only', false), 503]
  ] as const) {
    const store: Store = {
      load: async () => snapshot,
      commit: async () => {
        throw error
      },
      onChange: () => () => {},
      health: () => undefined,
      close: async () => {}
    }
    const settings = await Settings.open(store)
    await assert.rejects(
      settings.change(() => [{ entity: 'systemConfig', value: {} }]),
      { statusCode: status }
    )
    assert.equal(settings.current, snapshot)
  }
})

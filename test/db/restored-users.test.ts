import assert from 'node:assert/strict'
import { test } from 'tap'
import { createAccountRestorer } from '../../db/restored-users.ts'

test('memberships by a login are those at present, not those of a backup', async () => {
  const ada = { username: 'ada', createdAt: '2026-01-01T00:00:00.000Z' }
  const backup = { ...ada, loginGroups: ['eng'] }
  const restored = (present: object | undefined, keepsTokens = false): unknown =>
    createAccountRestorer(present === undefined ? [] : [present as typeof ada], keepsTokens)(backup).loginGroups
  assert.equal(restored(ada), undefined, 'it has ended since')
  assert.deepEqual(restored({ ...ada, loginGroups: ['ops'] }), ['ops'])
  assert.deepEqual(restored({ ...ada, loginGroups: ['eng'] }), ['eng'])
  assert.equal(restored({ ...ada, createdAt: '2026-02-02T00:00:00.000Z', loginGroups: ['eng'] }), undefined, 'another account')
  assert.equal(restored(undefined), undefined)
  assert.deepEqual(restored(undefined, true), ['eng'], 'the operator says that nothing has changed since')
})

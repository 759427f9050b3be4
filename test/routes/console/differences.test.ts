// The differences that the audit log shows for a change.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { deepDifferencesOf } from '../../../routes/console/differences.ts'

test('the audit log shows the members that differ', (t) => {
  const before = { config: { command: 'node', args: ['a'], env: { HOME: '/a', LANG: 'C' } }, name: 'one' }
  const after = { config: { command: 'node', args: ['b'], env: { HOME: '/b', LANG: 'C' }, owner: 'admin' }, name: 'one' }
  assert.deepEqual(deepDifferencesOf(before, after), [
    { path: 'config.args', before: '[\n  "a"\n]', after: '[\n  "b"\n]' },
    { path: 'config.env.HOME', before: '/a', after: '/b' },
    { path: 'config.owner', after: 'admin' }
  ], 'of objects that stay, with their paths')
  const whole = '{\n  "command": "node"\n}'
  assert.deepEqual(deepDifferencesOf(null, { config: { command: 'node' } }), [{ path: 'config', after: whole }], 'new')
  assert.deepEqual(deepDifferencesOf({ config: { command: 'node' } }, undefined), [{ path: 'config', before: whole }], 'gone')
  assert.deepEqual(deepDifferencesOf({ pick: 'all' }, { pick: { a: 1 } }), [
    { path: 'pick', before: 'all', after: '{\n  "a": 1\n}' }
  ], 'replaced')
  t.end()
})

// Which lists must be read again, and that clients with ever other capabilities leave nothing behind.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { emptyCapabilityClass } from '../../protocol/capabilities.ts'
import { OutdatedLists } from '../../plugins/upstream/catalogues/outdated.ts'

test('classes whose lists are not known any more are forgotten', async () => {
  const known = new Set([emptyCapabilityClass, 'a', 'b'])
  const outdated = new OutdatedLists({
    get classes () { return [...known] },
    has: (each) => known.has(each),
    hasRead: () => false
  }, false)
  outdated.addOthers()
  assert.deepEqual([...known, 'unknown'].map((each) => outdated.hasClass(each)), [false, true, true, false])
  outdated.add('unknown')
  assert.equal(outdated.hasClass('unknown'), false)
  known.delete('a')
  outdated.add(emptyCapabilityClass)
  assert.deepEqual(['a', 'b', emptyCapabilityClass].map((each) => outdated.hasClass(each)), [false, true, true])
  outdated.delete('b')
  assert.equal(outdated.hasClass('b'), false)
})

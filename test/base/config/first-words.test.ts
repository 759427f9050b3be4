import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { FirstStartNotice } from '../../../plugins/base/config/first-start.ts'
import { temporaryFolder } from '../../fakes/store-file.ts'

test('without a terminal the words of a first start are in a file for its owner only', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'data')
  const words = new FirstStartNotice({
    terminal: undefined,
    dataDir,
    makeFolder: () => { mkdirSync(dataDir, { recursive: true }) }
  })
  const file = join(dataDir, 'first-start-2.txt')
  const unread = join(dataDir, 'first-start.txt')
  // One that nobody has deleted may be unread: it is neither replaced nor filled.
  mkdirSync(dataDir)
  writeFileSync(unread, 'of an earlier start', { mode: 0o644 })
  await words.write('a password\n')
  await words.write('a key\n')
  assert.match(readFileSync(file, 'utf8'), /^[^\n]*Delete this file[^\n]*\na password\na key\n$/)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(words.file, file)
  assert.equal(readFileSync(unread, 'utf8'), 'of an earlier start')
  assert.deepEqual(readdirSync(dataDir).sort(), ['first-start-2.txt', 'first-start.txt'])

  words.retract()
  assert.ok(!existsSync(file))
  assert.equal(words.file, undefined)
  words.retract()
})

test('the file of a replica that starts at the same moment is not replaced', async (t) => {
  const dataDir = await temporaryFolder(t)
  const other = join(dataDir, 'first-start.txt')
  const words = new FirstStartNotice({ terminal: undefined, dataDir, makeFolder: () => { writeFileSync(other, 'of the other') } })
  await words.write('a password\n')
  assert.equal(readFileSync(other, 'utf8'), 'of the other')
  assert.match(readFileSync(join(dataDir, 'first-start-2.txt'), 'utf8'), /a password/)
})

test('words that nobody could read are an error', async (t) => {
  const dataDir = await temporaryFolder(t)
  const none = { dataDir, makeFolder: () => {} }
  const gone = { write: (_text: unknown, done: unknown) => { (done as (error: Error) => void)(new Error('EIO')); return false } }
  await assert.rejects(new FirstStartNotice({ ...none, terminal: gone }).write('x'), /The terminal cannot be written to \(EIO\)/)
  const closed = new FirstStartNotice({ ...none, terminal: undefined, makeFolder: () => { throw new Error('Change DATA_DIR to a place') } })
  await assert.rejects(closed.write('x'), /Change DATA_DIR/)
  closed.retract()
  await assert.rejects(new FirstStartNotice({ ...none, terminal: undefined, dataDir: join(dataDir, 'none') }).write('x'), { code: 'ENOENT' })
  assert.deepEqual(readdirSync(dataDir), [])

  let shown = ''
  const terminal = { write: (text: unknown, done: unknown) => { shown += String(text); (done as () => void)(); return true } }
  await new FirstStartNotice({ ...none, terminal }).write('a password\n')
  assert.equal(shown, 'a password\n')
  assert.deepEqual(readdirSync(dataDir), [], 'on a terminal nothing is written')
})

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { FileLock } from '../../db/file-lock.ts'
import { SettingsFile } from '../../db/json/settings-file.ts'

test('a file is the same as what was written only with exactly these bytes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-disk-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const path = join(folder, 'mcp_settings.json')
  const disk = new SettingsFile(path)
  assert.equal(await disk.findEdit(), 'none')
  for (const size of [0, 10, 256 * 1024, 700_000]) {
    const bytes = Buffer.alloc(size, 'x')
    await disk.write(bytes)
    assert.equal(await disk.findEdit(), 'same')
    const changed = (at: number): Buffer => Buffer.from(bytes).fill('y', at, at + 1)
    const longer = Buffer.concat([bytes, Buffer.from('x')])
    const others = size === 0 ? [longer] : [longer, bytes.subarray(1), changed(0), changed(size - 1), Buffer.alloc(0)]
    for (const other of others) {
      await writeFile(path, other)
      const found = await disk.findEdit()
      assert.ok(typeof found === 'object' && found.bytes.equals(other), `${size}: ${JSON.stringify(found).slice(0, 100)}`)
      await writeFile(path, bytes)
      assert.equal(await disk.findEdit(), 'same')
    }
  }
  await rm(path)
  assert.equal(await disk.findEdit(), 'gone')
})

test('a lock is released also on a file system that has become read-only', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-lock-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const lock = new FileLock(join(folder, 'mcp_settings.json'))
  await lock.acquire()
  const { rmSync } = fs
  fs.rmSync = () => { throw Object.assign(new Error('read-only'), { code: 'EROFS' }) }
  syncBuiltinESMExports()
  t.after(() => { fs.rmSync = rmSync; syncBuiltinESMExports() })
  lock.release()
  assert.equal(lock.isHeld, false)
})

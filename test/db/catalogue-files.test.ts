import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { CatalogueFiles } from '../../db/json/catalogues.ts'

void test('catalogues on disk: their folder is made when it is needed, also where somebody has removed it', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'tool-hub-test-'))
  t.after(async () => { await rm(dataDir, { recursive: true, force: true }) })
  const folder = join(dataDir, 'catalogues')
  const files = new CatalogueFiles(folder)
  assert.equal(await files.read('echo'), undefined)
  await files.write('echo', ['first', ' text'])
  assert.equal(await files.read('echo'), 'first text')
  await rm(folder, { recursive: true })
  assert.equal(await files.read('echo'), undefined)
  await Promise.all([files.write('echo', ['second']), files.write('other', ['third'])])
  assert.equal(await files.read('echo'), 'second')
  assert.equal(await files.read('other'), 'third')
  await files.remove('echo')
  assert.equal(await files.read('echo'), undefined)

  await rm(folder, { recursive: true })
  await writeFile(folder, 'no folder')
  await assert.rejects(files.write('echo', ['fourth']), /DATA_DIR/)
  await rm(folder)
  await mkdir(folder)
  await files.write('echo', ['fifth'])
  assert.equal(await files.read('echo'), 'fifth')
})

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { CatalogueFiles } from '../../db/json/catalogues.ts'
import type { CatalogueCache } from '../../db/store.ts'
import { appFor } from '../helpers/app.ts'
import { npmServer, until } from '../helpers/hub.ts'

const text = async (files: CatalogueFiles, server: string): Promise<string> => {
  let whole = ''
  for await (const piece of files.read(server)) whole += piece
  return whole
}

void test('catalogues on disk: their folder is made when it is needed, also where somebody has removed it', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'tool-hub-test-'))
  t.after(async () => { await rm(dataDir, { recursive: true, force: true }) })
  const folder = join(dataDir, 'catalogues')
  const files = new CatalogueFiles(folder)
  assert.equal(await text(files, 'echo'), '')
  await files.write('echo', ['first', ' text'])
  assert.equal(await text(files, 'echo'), 'first text')
  await rm(folder, { recursive: true })
  assert.equal(await text(files, 'echo'), '')
  await Promise.all([files.write('echo', ['second']), files.write('other', ['third'])])
  assert.equal(await text(files, 'echo'), 'second')
  assert.equal(await text(files, 'other'), 'third')
  await files.remove('echo')
  assert.equal(await text(files, 'echo'), '')

  const written = files.write('echo', (function * () { yield * ['in ', 'turns'] })())
  await files.waitForWrites()
  assert.equal(await text(files, 'echo'), 'in turns')
  await written

  await rm(folder, { recursive: true })
  await writeFile(folder, 'no folder')
  await assert.rejects(files.write('echo', ['fourth']), /DATA_DIR/)
  await rm(folder)
  await mkdir(folder)
  await files.write('echo', ['fifth'])
  assert.equal(await text(files, 'echo'), 'fifth')

  await assert.rejects(files.write('echo', (function * () {
    yield 'sixth'
    rmSync(folder, { recursive: true })
  })()), /ENOENT/)
  assert.equal(await text(files, 'echo'), '', 'no empty file in its place')
})

void test('a gateway that has closed has written its catalogues', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-test-'))
  t.after(async () => { await rm(folder, { recursive: true, force: true }) })
  const files = new CatalogueFiles(folder)
  const begun = new Set<Promise<void>>()
  let close = (): void => {}
  const closing = new Promise<void>((resolve) => { close = resolve })
  const slow: CatalogueCache = {
    read: (server) => files.read(server),
    readUses: async (server) => await files.readUses(server),
    writeUses: async (server, text) => { await files.writeUses(server, text) },
    readPins: async (server) => await files.readPins(server),
    writePins: async (server, text) => { await files.writePins(server, text) },
    removePins: async (server) => { await files.removePins(server) },
    remove: async (server) => { await files.remove(server) },
    waitForWrites: async () => { close(); await Promise.all(begun) },
    write: async (server, text) => {
      const writing = closing.then(async () => { await files.write(server, text) }).finally(() => begun.delete(writing))
      begun.add(writing)
      await writing
    }
  }
  const app = await appFor(t, { mcpServers: { everything: npmServer('everything') } }, {}, { catalogueCache: slow })
  await until(() => app.upstreams.countByStatus().connected === 1, 'it never connected')
  await until(() => begun.size > 0, 'no catalogue was kept')
  await app.close()
  assert.equal(begun.size, 0)
  assert.match(await text(files, 'everything'), /"echo"/)
})

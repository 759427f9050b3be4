// Compiled code is what this user executes: it is kept only where nobody else may write.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { join } from 'node:path'
import { test } from 'tap'
import { temporaryFolder } from '../fakes/store-file.ts'
import { path } from '../helpers/hub.ts'

const skip = 'enableCompileCache' in nodeModule ? false : 'this Node keeps no compiled code'

test('where compiled code is kept', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  const used = (dataDir: string, mayWrite = true): string => {
    const code = `import { useCompileCache } from ${JSON.stringify(path('cli/compile-cache.ts'))}; ` +
      `useCompileCache({ environment: { DATA_DIR: ${JSON.stringify(dataDir)} }, mayWrite: ${mayWrite} }); ` +
      'process.stdout.write((await import("node:module")).getCompileCacheDir() ?? "")'
    return execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], { cwd: path(''), encoding: 'utf8' })
  }
  const own = join(folder, 'own')
  assert.equal(used(own, false), '')
  assert.ok(!existsSync(own), 'a command makes no folder')
  mkdirSync(join(own, 'compiled/former'), { recursive: true })
  for (const each of [own, join(own, 'compiled')]) chmodSync(each, 0o700)
  assert.match(used(own), new RegExp(`^${own}/compiled/`))
  assert.ok(!existsSync(join(own, 'compiled/former')), 'what another version kept is removed')
  assert.match(used(own, false), new RegExp(`^${own}/compiled/`), 'a command reads it')

  chmodSync(join(own, 'compiled'), 0o770)
  assert.equal(used(own), '', 'others may write there')
  const link = join(folder, 'link')
  mkdirSync(link, { mode: 0o700 })
  symlinkSync(folder, join(link, 'compiled'))
  assert.equal(used(link), '', 'a link')
  assert.equal(used('/proc/nowhere'), '', 'no folder can be made')
})

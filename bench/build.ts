import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { path } from '../test/helpers/hub.ts'

const entry = path('dist/server.js')
const folders = ['schemas', 'protocol', 'db', 'plugins', 'routes'].map(path)

/** Runs `npm run build` where dist is missing, or older than a source. */
export function ensureBuilt (log: (progress: string) => void): void {
  const built = statSync(entry, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (Math.max(...sources().map((file) => statSync(file).mtimeMs)) <= built) return
  log('npm run build')
  const { status } = spawnSync('npm', ['run', 'build'], { cwd: path('.'), stdio: ['ignore', 2, 2], timeout: 180_000 })
  if (status !== 0) throw new Error('npm run build failed')
}

function sources (): string[] {
  const inside = folders.flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
  return [...inside.filter((name) => name.endsWith('.ts')), path('app.ts'), path('server.ts')]
}

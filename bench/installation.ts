import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { path } from '../test/helpers/hub.ts'
import type { Measurement } from './gateway.ts'
import { table } from './statistics.ts'

/** What `npm ci --omit=dev` installs, by the lock file and the folders that are here. */
export const installation: Measurement = { title: 'Installation', run: async () => await Promise.resolve(run()) }

interface Locked { packages: Record<string, { dev?: boolean }> }

function run (): string {
  const { packages } = JSON.parse(readFileSync(path('package-lock.json'), 'utf8')) as Locked
  const installed = Object.entries(packages).filter(([folder, { dev }]) => folder !== '' && dev !== true)
    .map(([folder]) => folder)
    .filter((folder) => statSync(path(folder), { throwIfNoEntry: false }) !== undefined)
  const size = installed.reduce((sum, folder) => sum + sizeOf(path(folder)), 0)
  return table(['', 'packages', 'MB', 'MB of dist/'], [
    ['production', String(installed.length), (size / 1e6).toFixed(0), (sizeOf(path('dist')) / 1e6).toFixed(1)]
  ])
}

/** The bytes of the files below a folder, without nested packages, which are counted by themselves. */
function sizeOf (folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const file = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? sum : sum + sizeOf(file)
    return entry.isFile() ? sum + statSync(file).size : sum
  }, 0)
}

// For the container image: removes all installed packages that the bundles contain. Packages that are not bundled stay,
// with their dependencies. Run it in a copy of the project, since it changes package.json.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { externalPackages } from './packages.mjs'

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const { dependencies } = manifest
manifest.dependencies = Object.fromEntries(Object.entries(dependencies).filter(([name]) => externalPackages.includes(name)))
writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
execFileSync('npm', ['prune', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { stdio: 'inherit' })

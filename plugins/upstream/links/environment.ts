import type { ServerConfig } from '../../../schemas/server.ts'
import { writtenByUser } from '../../../schemas/stored-by-user.ts'
import type { ProcessEnvironment } from './variables.ts'

/** The package indexes for package managers that a child runs (`systemConfig.install`). */
export interface Install { npmRegistry?: string, pythonIndexUrl?: string }

/** The variables of the gateway's environment that a child gets: enough to run, and no secrets. */
const inherited = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'TERM',
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'SystemRoot',
  'APPDATA',
  'PATHEXT'
]

/** The variables by which npm and its relatives (pnpm, yarn, bun, corepack) learn the registry, and below, pip and uv the index. */
const npmNames = [
  'npm_config_registry',
  'pnpm_config_registry',
  'YARN_REGISTRY',
  'YARN_NPM_REGISTRY_SERVER',
  'BUN_CONFIG_REGISTRY',
  'COREPACK_NPM_REGISTRY'
]
const pythonNames = ['UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL']

/** Variables that make a program run other code than its own. */
const hijacks = /^(LD_.*|DYLD_.*|NODE_OPTIONS|PYTHONSTARTUP|BASH_ENV|GIT_SSH_COMMAND)$/i

/** The names in `env` that a child does not get, since a user who is no admin wrote them. */
export function withheldNames ({ env = {}, storedByUser }: ServerConfig): string[] {
  const isUsers = writtenByUser(storedByUser)
  return Object.keys(env).filter((name) => hijacks.test(name) && isUsers('env', name))
}

/**
 * The whole environment of a child.
 * @param config with its variables filled in
 * @param environment the gateway's own
 */
export function childEnvironment (
  config: ServerConfig,
  environment: ProcessEnvironment,
  { npmRegistry, pythonIndexUrl }: Install
): Record<string, string> {
  const own = { ...config.env }
  for (const name of withheldNames(config)) delete own[name]
  const result: Record<string, string> = {}
  for (const name of inherited) {
    const value = environment[name]
    if (value !== undefined) result[name] = value
  }
  for (const [names, address] of [
    [npmNames, npmRegistry],
    [pythonNames, pythonIndexUrl]
  ] as const) {
    // A config that sets it for one manager of a family wins for all of them: another one's variable could override it.
    if (address && !mentions(own, names)) for (const name of names) result[name] = address
  }
  return { ...result, ...own }
}

function mentions (env: Readonly<Record<string, string>>, names: readonly string[]): boolean {
  const lower = new Set(names.map((name) => name.toLowerCase()))
  return Object.keys(env).some((name) => lower.has(name.toLowerCase()))
}

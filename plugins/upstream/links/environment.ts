import type { ServerConfig } from '../../../schemas/server.ts'
import type { Environment } from './variables.ts'

/** Where package managers that a child runs get their packages (`systemConfig.install`). */
export interface Install { npmRegistry?: string, pythonIndexUrl?: string }

/** What of our environment a child is given: enough to run, none of our secrets. */
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

/** How npm and those that follow it (pnpm, yarn, bun, corepack) are told the registry, and how pip and uv the index. */
const npmNames = [
  'npm_config_registry',
  'pnpm_config_registry',
  'YARN_REGISTRY',
  'YARN_NPM_REGISTRY_SERVER',
  'BUN_CONFIG_REGISTRY',
  'COREPACK_NPM_REGISTRY'
]
const pythonNames = ['UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL']

/** What makes a program run other code than it is named for. */
const hijacks = /^(LD_.*|DYLD_.*|NODE_OPTIONS|PYTHONSTARTUP|BASH_ENV|GIT_SSH_COMMAND)$/i

/** The names in `env` that a child is not given, since who stored the config is no admin. */
export const withheldNames = ({ env = {}, storedByUser }: ServerConfig): string[] =>
  storedByUser === true ? Object.keys(env).filter((name) => hijacks.test(name)) : []

/**
 * The whole environment of a child.
 * @param config with its variables filled in
 * @param environment our own
 */
export function childEnvironment (
  config: ServerConfig,
  environment: Environment,
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
    // Who says it for one manager of a family means it, and could be overruled by what another one's variable says.
    if (address && !mentions(own, names)) for (const name of names) result[name] = address
  }
  return { ...result, ...own }
}

function mentions (env: Readonly<Record<string, string>>, names: readonly string[]): boolean {
  const lower = new Set(names.map((name) => name.toLowerCase()))
  return Object.keys(env).some((name) => lower.has(name.toLowerCase()))
}

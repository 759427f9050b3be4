import { isDeepStrictEqual } from 'node:util'
import type { ServerConfig } from '../../../schemas/server.ts'
import { type UserVariableValues, hasUserVariables, withoutMissingValues } from '../../../schemas/user-variables.ts'
import { createConfigRedactor } from '../../base/secrets/index.ts'
import { defaultOwner } from '../../identity/index.ts'
import type { ServerValues } from '../values/server-values.ts'
import { expandVariables, type PackageIndexes, type ProcessEnvironment } from './environment.ts'
import { isRemoteMcpServer } from './transport.ts'

/** Members of a config that do not affect the connection, so that a change needs no new connection. */
const unrelatedMembers: ReadonlySet<string> = new Set([
  'enabled', 'owner', 'visibility', 'description', 'createdAt', 'tools', 'prompts', 'resources', 'skills',
  'sharedWithUsers', 'storedBy', 'pin'
])

/** Whether a connection that was opened with one config can be used with the other. */
export function canReuseConnection (a: ServerConfig, b: ServerConfig): boolean {
  // Links use the owner's values, and logins that end when the owner changes. Neither must be used for another owner,
  // or for a later server of the same name.
  const isOwnerBound = hasUserVariables(a) || hasUserVariables(b) || isRemoteMcpServer(a)
  const bindingOf = ({ owner = defaultOwner, createdAt }: ServerConfig): unknown[] => [owner, createdAt]
  if (isOwnerBound && !isDeepStrictEqual(bindingOf(a), bindingOf(b))) return false
  const names = new Set([...Object.keys(a), ...Object.keys(b)].filter((name) => !unrelatedMembers.has(name)))
  const textOf = (config: ServerConfig, name: string): string | undefined =>
    JSON.stringify(config[name as keyof ServerConfig])
  return [...names].every((name) => textOf(a, name) === textOf(b, name))
}

/** A config with its variables expanded, ready to connect with, and a function that masks its secrets in a text. */
interface ConnectableConfig {
  readonly config: ServerConfig
  readonly install: PackageIndexes | undefined
  readonly redact: (text: string) => string
}

/** Expands the variables in the config of one server, and masks its secrets in texts. */
export class PreparedConfig {
  readonly #written: ServerConfig
  readonly #environment: ProcessEnvironment
  readonly #install: (() => PackageIndexes | undefined) | undefined
  readonly #values: ServerValues | undefined
  #last: ConnectableConfig | undefined

  /**
   * @param written the stored config, with unexpanded variables
   * @param environment the environment from which variables are expanded
   * @param install returns the package indexes in the current settings
   * @param values the values that users provide; undefined if the config has no user variables
   */
  constructor (
    written: ServerConfig,
    environment: ProcessEnvironment,
    install: (() => PackageIndexes | undefined) | undefined,
    values?: ServerValues
  ) {
    this.#values = values
    this.#written = written
    this.#environment = environment
    this.#install = install
  }

  /**
   * The expanded config, without values of users. It is computed again only if the package indexes have changed, since
   * a config may have thousands of secrets.
   */
  get current (): ConnectableConfig {
    const install = this.#install?.()
    if (this.#last && isDeepStrictEqual(this.#last.install, install)) return this.#last
    this.#last = this.#expand(install)
    return this.#last
  }

  /**
   * Returns the expanded config for a link, with the values that its user has provided.
   * @param user the user of the link; undefined for a link of the gateway, which uses the owner's values
   * @throws UserActionRequired if required values are missing, StorageError
   */
  async forUser (user: string | undefined): Promise<ConnectableConfig> {
    const { current } = this
    if (!this.#values) return current
    const { redact, ...expanded } = this.#expand(current.install, await this.#values.valuesFor(user))
    return { ...expanded, redact: (text) => this.redact(redact(text)) }
  }

  #expand (install: PackageIndexes | undefined, values?: UserVariableValues): ConnectableConfig {
    const written = values ? withoutMissingValues(this.#written, values) : this.#written
    const { config, hide } = expandVariables(written, this.#environment, values)
    const scrub = createConfigRedactor({ ...config, install })
    return { config, install, redact: (text) => scrub(hide(text)) }
  }

  /** Masks the secrets of the config that was expanded last, and the values of users, in a text. */
  redact (text: string): string {
    const masked = this.#values?.mask(text) ?? text
    return this.#last?.redact(masked) ?? masked
  }
}

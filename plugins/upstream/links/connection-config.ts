import { isDeepStrictEqual } from 'node:util'
import type { ServerConfig } from '../../../schemas/server.ts'
import { type UserVariableValues, hasUserVariables, withoutMissingValues } from '../../../schemas/user-variables.ts'
import { createConfigRedactor } from '../../base/secrets/index.ts'
import type { ServerValues } from '../values/server-values.ts'
import { expandVariables, type PackageIndexes, type ProcessEnvironment } from './environment.ts'

/** Members of a config that can change without reconnecting. */
const unrelatedMembers: ReadonlySet<string> = new Set([
  'enabled', 'owner', 'visibility', 'description', 'createdAt', 'tools', 'prompts', 'resources', 'skills',
  'sharedWithUsers', 'storedBy', 'pin'
])

/** Whether a connection made with one config can be used with the other. */
export function canReuseConnection (a: ServerConfig, b: ServerConfig): boolean {
  // The gateway's link has the owner's values, which were given for this server, not for a later one of the same name.
  const hasValues = hasUserVariables(a) || hasUserVariables(b)
  if (hasValues && (a.owner !== b.owner || a.createdAt !== b.createdAt)) return false
  const names = new Set([...Object.keys(a), ...Object.keys(b)].filter((name) => !unrelatedMembers.has(name)))
  const textOf = (config: ServerConfig, name: string): string | undefined =>
    JSON.stringify(config[name as keyof ServerConfig])
  return [...names].every((name) => textOf(a, name) === textOf(b, name))
}

/** A config to connect with, and a function that masks its secrets in a text. */
interface ConnectableConfig {
  readonly config: ServerConfig
  readonly install: PackageIndexes | undefined
  readonly redact: (text: string) => string
}

/** Expands the variables in the config of one server. */
export class PreparedConfig {
  readonly #written: ServerConfig
  readonly #environment: ProcessEnvironment
  readonly #install: (() => PackageIndexes | undefined) | undefined
  readonly #values: ServerValues | undefined
  #last: ConnectableConfig | undefined

  /**
   * @param install returns the package indexes in the current settings
   * @param values the values that its users provide; undefined if it has no such variables
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
   * The config without values of users. Recomputed only when the package indexes change: a config may have thousands of
   * secrets.
   */
  get current (): ConnectableConfig {
    const install = this.#install?.()
    if (this.#last && isDeepStrictEqual(this.#last.install, install)) return this.#last
    this.#last = this.#expand(install)
    return this.#last
  }

  /**
   * The config for a link of one user, with the values that the user has given.
   * @param user undefined for links of the gateway
   * @throws UserActionRequired, StorageError
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

  /** Masks the secrets of the config used for the last connection, and the values of users. */
  redact (text: string): string {
    const masked = this.#values?.mask(text) ?? text
    return this.#last?.redact(masked) ?? masked
  }
}

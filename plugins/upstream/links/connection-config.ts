import { isDeepStrictEqual } from 'node:util'
import type { ServerConfig } from '../../../schemas/server.ts'
import { configScrubber } from '../../base/secrets/index.ts'
import { expandVariables, type PackageIndexes, type ProcessEnvironment } from './environment.ts'

/** Members of a config that can change without a new connection. */
const unrelatedMembers: ReadonlySet<string> = new Set([
  'enabled', 'owner', 'visibility', 'description', 'createdAt', 'tools', 'prompts', 'resources', 'skills',
  'sharedWithUsers', 'storedBy', 'pin'
])

/** Whether a connection made with one config can serve the other. */
export function isSameConnection (a: ServerConfig, b: ServerConfig): boolean {
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

/** The config of one server with its variables expanded. */
export class PreparedConfig {
  readonly #written: ServerConfig
  readonly #environment: ProcessEnvironment
  readonly #install: (() => PackageIndexes | undefined) | undefined
  #last: ConnectableConfig | undefined

  /** @param install returns the package indexes in the current settings */
  constructor (
    written: ServerConfig, environment: ProcessEnvironment, install: (() => PackageIndexes | undefined) | undefined
  ) {
    this.#written = written
    this.#environment = environment
    this.#install = install
  }

  /** Recomputed only when the package indexes change: a config may have thousands of secrets. */
  get current (): ConnectableConfig {
    const install = this.#install?.()
    if (this.#last && isDeepStrictEqual(this.#last.install, install)) return this.#last
    const { config, hide } = expandVariables(this.#written, this.#environment)
    const withoutSecrets = configScrubber({ ...config, install })
    this.#last = { config, install, redact: (text) => withoutSecrets(hide(text)) }
    return this.#last
  }

  /** Masks the secrets of the config that was last connected with. */
  redact (text: string): string { return this.#last?.redact(text) ?? text }
}

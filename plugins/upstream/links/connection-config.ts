import { isDeepStrictEqual } from 'node:util'
import type { ServerConfig } from '../../../schemas/server.ts'
import { redactor } from '../../base/secrets/index.ts'
import { expandVariables, type Install, type ProcessEnvironment } from './environment.ts'

/** Members of a config that can change without a new connection. */
const withoutConnection: ReadonlySet<string> = new Set([
  'enabled', 'owner', 'visibility', 'description', 'createdAt', 'tools', 'prompts', 'resources', 'sharedWithUsers',
  'storedBy'
])

/** Whether a connection made with one config serves the other. */
export function sameConnection (a: ServerConfig, b: ServerConfig): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)].filter((name) => !withoutConnection.has(name)))
  const textOf = (config: ServerConfig, name: string): string | undefined =>
    JSON.stringify(config[name as keyof ServerConfig])
  return [...names].every((name) => textOf(a, name) === textOf(b, name))
}

/** A config to connect with, and a function that removes its secrets from a text. */
interface Prepared {
  readonly config: ServerConfig
  readonly install: Install | undefined
  readonly redact: (text: string) => string
}

/** The config of one server with its variables filled in. */
export class PreparedConfig {
  readonly #written: ServerConfig
  readonly #environment: ProcessEnvironment
  readonly #install: (() => Install | undefined) | undefined
  #last: Prepared | undefined

  /** @param install the package indexes, by the current settings */
  constructor (
    written: ServerConfig, environment: ProcessEnvironment, install: (() => Install | undefined) | undefined
  ) {
    this.#written = written
    this.#environment = environment
    this.#install = install
  }

  /** Made again only when the package indexes change: a config may have thousands of secrets. */
  get current (): Prepared {
    const install = this.#install?.()
    if (this.#last && isDeepStrictEqual(this.#last.install, install)) return this.#last
    const { config, hide } = expandVariables(this.#written, this.#environment)
    const withoutSecrets = redactor({ ...config, install })
    this.#last = { config, install, redact: (text) => withoutSecrets(hide(text)) }
    return this.#last
  }

  /** A text without the secrets of the config as it was last connected with. */
  redact (text: string): string { return this.#last?.redact(text) ?? text }
}

import { Env } from '../../../schemas/env.ts'
import { type MaskSecret, isPlaceholder } from '../../base/secrets/index.ts'
import { isGatewaySecretName, type ProcessEnvironment, variablePattern } from '../../upstream/index.ts'

/**
 * Variables of any gateway, its machine and its runtime, also of the gateway that imports: they have values of another
 * meaning.
 */
const occupied = new Set([
  ...Object.keys(Env.properties),
  ...'PATH HOME USER LOGNAME SHELL LANG TZ PWD TMPDIR TEMP TMP TERM HOSTNAME NODE_ENV NODE_OPTIONS'.split(' ')
])

/** A text as the name of a variable; empty when it has no letter or digit that one may have. */
const toName = (text: string): string =>
  text.normalize('NFKD').replace(/[^A-Za-z0-9]+/g, '_').replace(/^_+|_+$/g, '').toUpperCase().slice(0, 64)

/** All `${NAME}` in a text. */
export const referencesIn = (text: string): string[] => [...text.matchAll(variablePattern)].map(([, name = '']) => name)

/** An authentication scheme before a secret stays readable. */
const scheme = /^((?:bearer|basic|token|apikey) +)(.+)$/is

/** How the variables of a server are named. */
interface Naming {
  /** A hint is the name of a variable already, as in `env`. */
  readonly isOwnName?: boolean
  /**
   * A user without admin rights wrote some value, and so may have chosen server and hint: the name gets a prefix and a
   * suffix, so that it is not that of a variable of the gateway that imports.
   */
  readonly isUsers?: boolean
}

/** The variables that stand for the secrets of one template. A variable stands for one secret. */
export class TemplateVariables {
  /** The secret of each variable; undefined: one that the configs name themselves. */
  readonly #secrets = new Map<string, string | undefined>()

  /**
   * Of names that end in a number: the next one, and the names by their secrets. An address may have thousands of
   * parameters.
   */
  readonly #numbers = new Map<string, { next: number, readonly names: Map<string, string> }>()

  /** The names of the variables that the gateway has, in upper case: on some systems names are not case-sensitive. */
  readonly #present: ReadonlySet<string>

  /**
   * @param named variables that the configs name themselves
   * @param environment the one that the gateway fills in from: none of its variables stands for a secret
   */
  constructor (named: Iterable<string>, environment: ProcessEnvironment) {
    for (const name of named) this.#secrets.set(name, undefined)
    this.#present = new Set(Object.keys(environment).map((name) => name.toUpperCase()))
  }

  /** Replaces the secrets of one server. */
  coverOf (server: string, naming: Naming = {}): MaskSecret {
    return (secret, hint) => {
      if (isPlaceholder(secret)) return secret
      const [, before = '', rest = secret] = scheme.exec(secret) ?? []
      return isPlaceholder(rest) ? secret : `${before}\${${this.#nameOf(rest, server, hint, naming)}}`
    }
  }

  /**
   * Replaces a variable that a user wrote and that is not filled in for that user, as a secret.
   * @param written `${NAME}`
   */
  ofUsers (written: string, server: string, hint: string): string {
    return `\${${this.#nameOf(written, server, hint, { isUsers: true })}}`
  }

  #nameOf (secret: string, server: string, hint: string, { isOwnName = false, isUsers = false }: Naming): string {
    const own = toName(hint) || 'VALUE'
    const prefixed = `${toName(server) || 'SERVER'}_${own}`
    const candidates = isUsers
      ? [`MCP_${prefixed}_VALUE`]
      : [...(isOwnName && /^[A-Za-z_]\w*$/.test(hint) ? [hint] : []), prefixed].flatMap((name) =>
          [name, `${name}_VALUE`, `MCP_${name}`, `MCP_${name}_VALUE`])
    for (const candidate of candidates) {
      const name = /^\d/.test(candidate) ? `_${candidate}` : candidate
      if (!this.#isFree(name)) continue
      if (!this.#secrets.has(name)) this.#secrets.set(name, secret)
      if (this.#secrets.get(name) === secret) return name
    }
    return this.#numbered(`MCP_${prefixed}_VALUE`, secret, candidates.length)
  }

  /** The next free name with a number; a secret that has one keeps it. @param first the first number */
  #numbered (name: string, secret: string, first: number): string {
    let numbered = this.#numbers.get(name)
    if (!numbered) this.#numbers.set(name, numbered = { next: first, names: new Map() })
    const known = numbered.names.get(secret)
    if (known !== undefined) return known
    let found: string
    do found = `${name}_${numbered.next++}`
    while (!this.#isFree(found) || this.#secrets.has(found))
    this.#secrets.set(found, secret)
    numbered.names.set(secret, found)
    return found
  }

  #isFree (name: string): boolean {
    return !isGatewaySecretName(name) && !occupied.has(name) && !/_FILE$/.test(name) &&
      !this.#present.has(name.toUpperCase())
  }
}

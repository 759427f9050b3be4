import { Env } from '../../../schemas/env.ts'
import { maskAroundVariables, type MaskSecret, isPlaceholder } from '../../base/secrets/index.ts'
import { isGatewaySecretName, type ProcessEnvironment, variablePattern } from '../../upstream/index.ts'

/**
 * Variables that must not be used for secrets: those of the gateway, the system and the runtime have a meaning
 * everywhere.
 */
const reservedNames = new Set([
  ...Object.keys(Env.properties),
  ...'PATH HOME USER LOGNAME SHELL LANG TZ PWD TMPDIR TEMP TMP TERM HOSTNAME NODE_ENV NODE_OPTIONS'.split(' ')
])

/** Converts a text to a variable name; empty if none of its characters can be used. */
const toName = (text: string): string =>
  text.normalize('NFKD').replace(/[^A-Za-z0-9]+/g, '_').replace(/^_+|_+$/g, '').toUpperCase().slice(0, 64)

/** Returns the names of all `${NAME}` in a text. */
export const variableNamesIn = (text: string): string[] =>
  [...text.matchAll(variablePattern)].map(([, name = '']) => name)

/** Matches a secret after an authentication scheme, which stays readable. */
const scheme = /^((?:bearer|basic|token|apikey) +)(.+)$/is

/** How the variables of a server are named. */
interface VariableNaming {
  /** Whether the hint can be used as the variable's name, as in `env`. */
  readonly canUseHint?: boolean
  /**
   * Whether a user without admin rights wrote a value, and so may have chosen the names that the variable is named
   * after. A prefix and a suffix then keep it from naming a variable of the importing gateway.
   */
  readonly isByUser?: boolean
}

/** The variables that replace the secrets of one template. Each variable stands for one secret. */
export class TemplateVariables {
  /** The secret that each variable replaces; undefined for a variable that the configs already refer to. */
  readonly #secrets = new Map<string, string | undefined>()

  /** For numbered names: the next number, and the names by secret, since a URL may have thousands of parameters. */
  readonly #numbers = new Map<string, { next: number, readonly names: Map<string, string> }>()

  /** The names of the gateway's environment variables, in upper case: some systems ignore case. */
  readonly #environmentNames: ReadonlySet<string>

  /**
   * @param named the variables that the configs already refer to
   * @param environment the gateway's environment; none of its names is used for a secret
   */
  constructor (named: Iterable<string>, environment: ProcessEnvironment) {
    for (const name of named) this.#secrets.set(name, undefined)
    this.#environmentNames = new Set(Object.keys(environment).map((name) => name.toUpperCase()))
  }

  /** Returns a function that replaces each secret of one server by a variable. */
  createReplacer (server: string, naming: VariableNaming = {}): MaskSecret {
    const cover: MaskSecret = (secret, hint) => {
      if (isPlaceholder(secret)) return secret
      const around = maskAroundVariables(secret, (literal) => cover(literal, hint))
      if (around !== undefined) return around
      const [, before = '', rest = secret] = scheme.exec(secret) ?? []
      return isPlaceholder(rest) ? secret : `${before}\${${this.#nameOf(rest, server, hint, naming)}}`
    }
    return cover
  }

  /** Replaces a user's variable that is not expanded for that user, like a secret. @param written `${NAME}` */
  replaceUserVariable (written: string, server: string, hint: string): string {
    return `\${${this.#nameOf(written, server, hint, { isByUser: true })}}`
  }

  #nameOf (
    secret: string, server: string, hint: string, {
      canUseHint: isOwnName = false, isByUser: isUsers = false
    }: VariableNaming
  ): string {
    const own = toName(hint) || 'VALUE'
    const prefixed = `${toName(server) || 'SERVER'}_${own}`
    const candidates = isUsers
      ? [`MCP_${prefixed}_VALUE`]
      : [...(isOwnName && /^[A-Za-z_]\w*$/.test(hint) ? [hint] : []), prefixed].flatMap((name) =>
          [name, `${name}_VALUE`, `MCP_${name}`, `MCP_${name}_VALUE`])
    for (const candidate of candidates) {
      const name = /^\d/.test(candidate) ? `_${candidate}` : candidate
      if (!this.#isUnreserved(name)) continue
      if (!this.#secrets.has(name)) this.#secrets.set(name, secret)
      if (this.#secrets.get(name) === secret) return name
    }
    return this.#numberedName(`MCP_${prefixed}_VALUE`, secret, candidates.length)
  }

  /**
   * Returns the numbered name of a secret: the one it already has, or the next free one.
   * @param first the first number
   */
  #numberedName (name: string, secret: string, first: number): string {
    let numbered = this.#numbers.get(name)
    if (!numbered) this.#numbers.set(name, numbered = { next: first, names: new Map() })
    const known = numbered.names.get(secret)
    if (known !== undefined) return known
    let found: string
    do found = `${name}_${numbered.next++}`
    while (!this.#isUnreserved(found) || this.#secrets.has(found))
    this.#secrets.set(found, secret)
    numbered.names.set(secret, found)
    return found
  }

  #isUnreserved (name: string): boolean {
    return !isGatewaySecretName(name) && !reservedNames.has(name) && !/_FILE$/.test(name) &&
      !this.#environmentNames.has(name.toUpperCase())
  }
}

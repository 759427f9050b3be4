import { Env } from '../../../schemas/env.ts'
import { maskAroundVariables, type MaskSecret, isEmptyOrVariable } from '../../base/secrets/index.ts'
import { isGatewaySecretName, type ProcessEnvironment, variablePattern } from '../../upstream/index.ts'

/**
 * Names that templates do not give to variables for secrets, since the gateway or the system reads these variables.
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

/** Matches an authentication scheme and a secret. The scheme stays readable. */
const schemePattern = /^((?:bearer|basic|token|apikey) +)(.+)$/is

/** How the variables for secrets are named. */
interface VariableNaming {
  /** Whether the name of the member with the secret can be used as the name of the variable, as in `env`. */
  readonly canUseHint?: boolean
  /**
   * Whether a user without admin rights wrote the config, and so may have chosen the names of the server and the
   * member. The name of the variable then gets a prefix and a suffix, so that it cannot be the name of a variable of
   * the importing gateway.
   */
  readonly isByUser?: boolean
}

/** The variables that replace the secrets of one template. Each variable stands for one secret. */
export class TemplateVariables {
  /** The secret that each variable replaces; undefined for a variable that the configs already refer to. */
  readonly #secrets = new Map<string, string | undefined>()

  /**
   * For each name to which numbers are appended: the next number, and the numbered names by secret. Without this map, a
   * free number would have to be searched for each of the thousands of parameters that a URL may have.
   */
  readonly #numbers = new Map<string, { next: number, readonly names: Map<string, string> }>()

  /** The names of the gateway's environment variables in upper case, since some systems ignore case. */
  readonly #environmentNames: ReadonlySet<string>

  /**
   * @param referenced the names of the variables that the configs already refer to
   * @param environment the gateway's environment; none of its names is used for a secret
   */
  constructor (referenced: Iterable<string>, environment: ProcessEnvironment) {
    for (const name of referenced) this.#secrets.set(name, undefined)
    this.#environmentNames = new Set(Object.keys(environment).map((name) => name.toUpperCase()))
  }

  /** Returns a function that replaces each secret of one server by a variable. */
  createReplacer (server: string, naming: VariableNaming = {}): MaskSecret {
    const replace: MaskSecret = (secret, hint) => {
      if (isEmptyOrVariable(secret)) return secret
      const replaced = maskAroundVariables(secret, (literal) => replace(literal, hint))
      if (replaced !== undefined) return replaced
      const [, scheme = '', rest = secret] = schemePattern.exec(secret) ?? []
      return isEmptyOrVariable(rest) ? secret : `${scheme}\${${this.#nameOf(rest, server, hint, naming)}}`
    }
    return replace
  }

  /**
   * Replaces a variable that a user wrote, and that the gateway does not expand, by a variable of the template, as if
   * it were a secret.
   * @param written the variable as written, such as `${NAME}`
   * @param hint the name of the member that contains it
   */
  replaceUserVariable (written: string, server: string, hint: string): string {
    return `\${${this.#nameOf(written, server, hint, { isByUser: true })}}`
  }

  /** Returns the name of the variable for a secret. @param hint the name of the member that contains the secret */
  #nameOf (
    secret: string, server: string, hint: string, { canUseHint = false, isByUser = false }: VariableNaming
  ): string {
    const own = toName(hint) || 'VALUE'
    const prefixed = `${toName(server) || 'SERVER'}_${own}`
    const candidates = isByUser
      ? [`MCP_${prefixed}_VALUE`]
      : [...(canUseHint && /^[A-Za-z_]\w*$/.test(hint) ? [hint] : []), prefixed].flatMap((name) =>
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
   * Returns the numbered name for a secret: the name that it already has, or the next free name.
   * @param first the number of the first name
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

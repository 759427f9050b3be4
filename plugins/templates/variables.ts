import { Env } from '../../schemas/env.ts'
import { isNoSecret } from '../secrets/mask.ts'
import type { Cover } from '../secrets/tokens.ts'
import { isOurs } from '../upstream/links/variables.ts'

/** Variables of the gateway, of its machine and its runtime: they have values already, which are not what a server needs. */
const occupied = new Set([
  ...Object.keys(Env.properties),
  ...'PATH HOME USER LOGNAME SHELL LANG TZ PWD TMPDIR TEMP TMP TERM HOSTNAME NODE_ENV NODE_OPTIONS'.split(' ')
])

const isFree = (name: string): boolean => !isOurs(name) && !occupied.has(name) && !/_FILE$/.test(name)

/** A text as the name of a variable; empty when it has no letter or digit that one may have. */
const toName = (text: string): string =>
  text.normalize('NFKD').replace(/[^A-Za-z0-9]+/g, '_').replace(/^_+|_+$/g, '').toUpperCase().slice(0, 64)

/** All `${NAME}` in a text. */
export const referencesIn = (text: string): string[] => [...text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name = '']) => name)

/** An authentication scheme before a secret stays readable. */
const scheme = /^((?:bearer|basic|token|apikey) +)(.+)$/is

/** The variables that stand for the secrets of one template. A variable stands for one secret. */
export class Variables {
  /** The secret of each variable; undefined: one that the configs name themselves. */
  readonly #secrets = new Map<string, string | undefined>()

  /** Of names that end in a number: the next one, and the names by their secrets. An address may have thousands of parameters. */
  readonly #numbers = new Map<string, { next: number, readonly names: Map<string, string> }>()

  /** @param named variables that the configs name themselves */
  constructor (named: Iterable<string>) {
    for (const name of named) this.#secrets.set(name, undefined)
  }

  /** Replaces the secrets of one server. @param isOwnName whether a hint is the name of a variable already, as in `env` */
  coverOf (server: string, isOwnName = false): Cover {
    return (secret, hint) => {
      if (isNoSecret(secret)) return secret
      const [, before = '', rest = secret] = scheme.exec(secret) ?? []
      return isNoSecret(rest) ? secret : `${before}\${${this.#nameOf(rest, server, hint, isOwnName)}}`
    }
  }

  #nameOf (secret: string, server: string, hint: string, isOwnName: boolean): string {
    const own = toName(hint) || 'VALUE'
    const prefixed = `${toName(server) || 'SERVER'}_${own}`
    const candidates = [...(isOwnName && /^[A-Za-z_]\w*$/.test(hint) ? [hint] : []), prefixed].flatMap((name) =>
      [name, `${name}_VALUE`, `MCP_${name}`, `MCP_${name}_VALUE`])
    for (const candidate of candidates) {
      const name = /^\d/.test(candidate) ? `_${candidate}` : candidate
      if (!isFree(name)) continue
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
    while (!isFree(found) || this.#secrets.has(found))
    this.#secrets.set(found, secret)
    numbered.names.set(secret, found)
    return found
  }
}

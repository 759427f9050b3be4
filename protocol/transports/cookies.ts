/** Max length of the `Cookie` header, in characters; a cookie that would exceed it is ignored. */
const maxLength = 8 * 1024

/**
 * The cookies that a server has set on one connection. Load balancers use cookies to route the requests of a session to
 * one instance. The cookies are sent back on the same connection, which has one origin, so domain and path have no
 * effect.
 */
export class CookieJar {
  readonly #configured: string | undefined
  readonly #pairs = new Map<string, string>()
  #header: string | undefined

  /** @param configured a `Cookie` header that is always sent */
  constructor (configured: string | undefined) {
    this.#configured = configured
    this.#header = configured
  }

  /** The value of the `Cookie` header; undefined: none is sent. */
  get header (): string | undefined { return this.#header }

  /** Applies the `Set-Cookie` headers of an answer. */
  store (headers: string | readonly string[]): void {
    for (const each of [headers].flat()) {
      const [pair = '', ...attributes] = each.split(';')
      const [, name, value = ''] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=([\x20-\x7e]*)$/.exec(pair) ?? []
      if (name === undefined) continue
      const former = this.#pairs.get(name)
      if (hasExpired(attributes)) this.#pairs.delete(name)
      else this.#pairs.set(name, `${name}=${value.trim()}`)
      const header = [this.#configured, ...this.#pairs.values()].filter((each) => each !== undefined).join('; ')
      if (header.length <= maxLength) this.#header = header === '' ? undefined : header
      else if (former === undefined) this.#pairs.delete(name)
      else this.#pairs.set(name, former)
    }
  }
}

/** Whether a cookie has expired. `Max-Age` has precedence over `Expires` (RFC 6265, section 5.3). */
function hasExpired (attributes: readonly string[]): boolean {
  const valueOf = (name: RegExp): string | undefined =>
    attributes.map((each) => name.exec(each)?.[1]).findLast((value) => value !== undefined)
  const maxAge = valueOf(/^\s*max-age\s*=\s*(-?\d+)\s*$/i)
  if (maxAge !== undefined) return Number(maxAge) <= 0
  return Date.parse(valueOf(/^\s*expires\s*=\s*(.*?)\s*$/i) ?? '') <= Date.now()
}

/** Max length of the `Cookie` header, in characters; a cookie beyond it is not kept. */
const maxLength = 8 * 1024

/**
 * The cookies that a server has set on one connection. Load balancers tell by them where a session is. They are sent
 * back on the same connection, which has one origin, so only their names and values matter (RFC 6265, section 4).
 */
export class Cookies {
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

  /** Keeps what the `Set-Cookie` headers of an answer say. */
  store (lines: string | readonly string[]): void {
    for (const line of [lines].flat()) {
      const [pair = '', ...attributes] = line.split(';')
      const [, name, value = ''] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=([\x20-\x7e]*)$/.exec(pair) ?? []
      if (name === undefined) continue
      const former = this.#pairs.get(name)
      if (attributes.some(isPast)) this.#pairs.delete(name)
      else this.#pairs.set(name, `${name}=${value.trim()}`)
      const header = [this.#configured, ...this.#pairs.values()].filter((each) => each !== undefined).join('; ')
      if (header.length <= maxLength) this.#header = header === '' ? undefined : header
      else if (former === undefined) this.#pairs.delete(name)
      else this.#pairs.set(name, former)
    }
  }
}

/** Whether an attribute says that the cookie has ended. */
const isPast = (attribute: string): boolean => {
  const [, name = '', value = ''] = /^\s*(max-age|expires)\s*=\s*(.*?)\s*$/i.exec(attribute) ?? []
  return /^m/i.test(name) ? Number(value) <= 0 : Date.parse(value) <= Date.now()
}

import { lookup } from 'node:dns'
import { Agent, type Dispatcher } from 'undici'
import { UpstreamError } from '../../protocol/errors.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import { limits } from '../limits/index.ts'
import { Allowed } from './allowed.ts'
import { guardedConnector, type Resolver } from './connector.ts'
import { fetchWhole, type Fetched, type FetchOptions } from './fetch.ts'
import { Policy, Refused } from './policy.ts'
import { bypasses, tunnel } from './proxy.ts'

/** On whose behalf something is reached, and how. */
export interface Reach {
  /** Stored by an admin or in the settings file: private and loopback addresses may be reached, and a proxy used. */
  trusted: boolean
  proxy?: ServerConfig['proxy']
}

/** How a server may be reached: who stored its config last counts, not whose it is. */
export const reachOf = ({ storedByUser, proxy }: ServerConfig): Reach => ({ trusted: storedByUser !== true, proxy })

export interface OutboundOptions {
  /** The text of OUTBOUND_ALLOW. */
  allow: string
  /** Looks names up; the system's way if absent. */
  resolve?: Resolver
}

/** The one way out, for everything that goes over the network. Addresses are checked with each connection, never with each request. */
export class Outbound {
  readonly #policy: Policy
  readonly #resolve: Resolver
  readonly #direct: { readonly trusted: Agent, readonly untrusted: Agent }
  /** By the proxy's address, credentials included. */
  readonly #proxied = new Map<string, { readonly agent: Agent, readonly close: () => Promise<void> }>()

  /** @throws Error when `allow` cannot be read */
  constructor ({ allow, resolve = lookup }: OutboundOptions) {
    this.#policy = new Policy(new Allowed(allow))
    this.#resolve = resolve
    this.#direct = { trusted: this.#agent(this.#connector(true)), untrusted: this.#agent(this.#connector(false)) }
  }

  /**
   * The dispatcher that requests to this address go through. It is shared: one for all who are trusted, one for all others, one
   * for each proxy. What may not be reached fails with each request, as an address that is away does.
   */
  dispatcher (url: URL, { trusted, proxy }: Reach): Dispatcher {
    const problem = this.#problem(url, { trusted, proxy })
    if (problem !== undefined) return this.#agent((_options, callback) => { process.nextTick(callback, new Refused(problem), null) })
    if (proxy?.url === undefined || bypasses(proxy.noProxy, url)) return trusted ? this.#direct.trusted : this.#direct.untrusted
    return this.#through(proxy.url)
  }

  /** One request and its whole answer; see `fetchWhole` for what it throws. Any status is an answer. */
  async fetch (url: string | URL, { trusted, proxy, ...options }: FetchOptions & Reach): Promise<Fetched> {
    const text = String(url)
    const problem = URL.canParse(text) ? this.#problem(new URL(text), { trusted, proxy }) : 'it is not an absolute http or https address'
    if (problem !== undefined) throw new UpstreamError('unreachable', problem)
    const address = new URL(text)
    return await fetchWhole(address, this.dispatcher(address, { trusted, proxy }), options)
  }

  /** Why an address will not be reached, as far as can be told without looking names up; undefined: nothing is known against it. */
  warning (address: string, reach: Reach): string | undefined {
    if (!URL.canParse(address)) return undefined
    const url = new URL(address)
    return this.#problem(url, reach) ?? this.#policy.refusal(url.hostname, reach.trusted) ??
      (reach.proxy?.url === undefined ? undefined : this.#policy.refusal(new URL(reach.proxy.url).hostname, reach.trusted))
  }

  async close (): Promise<void> {
    await Promise.all(
      [this.#direct.trusted, this.#direct.untrusted, ...[...this.#proxied.values()].map(({ agent }) => agent)].map(async (agent) => {
        await agent.destroy()
      })
    )
    await Promise.all([...this.#proxied.values()].map(async ({ close }) => { await close() }))
  }

  #through (proxy: string): Agent {
    const known = this.#proxied.get(proxy)
    if (known) return known.agent
    const { connect, close } = tunnel(new URL(proxy), this.#connector(true), this.#policy, limits.connectTimeout)
    const agent = this.#agent(connect)
    this.#proxied.set(proxy, { agent, close })
    // Whoever still uses the one that goes keeps it; its sockets end by themselves.
    for (const [oldest] of this.#proxied) if (this.#proxied.size > limits.proxies) this.#proxied.delete(oldest)
    return agent
  }

  /** What is wrong with an address before it is even looked at. */
  #problem (url: URL, { trusted, proxy }: Reach): string | undefined {
    if (url.protocol !== 'http:' && url.protocol !== 'https:') return `only http and https addresses are reached, not ${url.protocol}`
    if (url.username !== '' || url.password !== '') {
      return 'an address must not hold a user name or password: put credentials into "headers"'
    }
    if (proxy?.url === undefined) return undefined
    if (!trusted) return 'a "proxy" works only in servers that an admin stored'
    return URL.canParse(proxy.url) && /^https?:$/.test(new URL(proxy.url).protocol)
      ? undefined
      : '"proxy.url" must be an absolute http or https address'
  }

  #connector (trusted: boolean): ReturnType<typeof guardedConnector> {
    return guardedConnector(this.#policy, trusted, this.#resolve, limits.connectTimeout)
  }

  #agent (connect: ReturnType<typeof guardedConnector>): Agent {
    // No bound on connections: event streams hold theirs for hours, and a call must never queue behind one.
    return new Agent({ connect, keepAliveTimeout: 4_000, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: limits.upstreamHeaders })
  }
}

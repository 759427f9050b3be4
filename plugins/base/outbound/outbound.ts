import type { Dispatcher } from 'undici'
import { UpstreamError } from '../../../protocol/errors.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { addressPlaces, createUserAuthorshipCheck } from '../../../schemas/stored-by-user.ts'
import { BoundedMap, baseLimits } from '../limits/index.ts'
import {
  bypassesProxy, guardedConnector, createUserResolver, systemResolver, tunnelConnector, type HostResolver
} from './connector.ts'
import { fetchWhole, type FetchedResponse, type FetchOptions } from './fetch.ts'
import { OutboundAllowlist, OutboundPolicy, OutboundRefused } from './policy.ts'
import { Agent } from './undici.ts'

/** What determines how the gateway may connect to a server. */
export interface OutboundAccess {
  /**
   * Whether the server's addresses were stored by an admin or are from the settings file. Only then may they be private
   * or loopback addresses, and only then may the server have a proxy.
   */
  trusted: boolean
  proxy?: ServerConfig['proxy']
  /** The owner of the server. The untrusted servers of one owner share connections, and a limit of DNS look-ups. */
  owner?: string
}

/** Returns how the gateway may connect to a server. Its trust depends on who stored its addresses, not on its owner. */
export function outboundAccessOf ({ storedByUser, proxy, owner }: ServerConfig): OutboundAccess {
  const isWrittenByUser = createUserAuthorshipCheck(storedByUser)
  return { trusted: !addressPlaces.some((place) => isWrittenByUser(...place)), proxy, owner }
}

/** Returns the owner against whose memory share a server's responses count if no client has requested them. */
export const serverMemoryOwner = ({ trusted, owner }: OutboundAccess): string =>
  trusted ? 'servers of admins' : `user ${owner}`

interface OutboundOptions {
  /** The text of OUTBOUND_ALLOW. */
  allow: string
  /**
   * Resolves host names for all servers. Default: `systemResolver` for those of admins, otherwise `createUserResolver`.
   */
  resolve?: HostResolver
}

/** Makes the gateway's HTTP connections to other hosts. Addresses are checked once per connection, not per request. */
export class Outbound {
  readonly #policy: OutboundPolicy
  readonly #allowed: OutboundAllowlist
  readonly #resolve: HostResolver | undefined
  readonly #trusted: Agent
  /** Agents by owner. An evicted agent finishes its open requests; its idle sockets close by themselves. */
  readonly #untrusted = new BoundedMap<string, Agent>(baseLimits.outboundOwners)
  /** Agents by URL of the proxy, with credentials. An evicted agent finishes its open requests. */
  readonly #proxied =
    new BoundedMap<string, { readonly agent: Agent, readonly close: () => Promise<void> }>(baseLimits.proxies)

  /** @throws Error for an invalid entry in `allow` */
  constructor ({ allow, resolve }: OutboundOptions) {
    this.#allowed = new OutboundAllowlist(allow)
    this.#policy = new OutboundPolicy(this.#allowed)
    this.#resolve = resolve
    this.#trusted = this.#agent(this.#connector(resolve ?? systemResolver, true))
  }

  /**
   * Returns the undici dispatcher for requests to a URL. The trusted servers share one, the untrusted servers of each
   * owner share one, and the servers behind each proxy share one. A request to a forbidden address fails like one to an
   * unreachable address.
   */
  dispatcher (url: URL, { trusted, proxy, owner = '' }: OutboundAccess): Dispatcher {
    const problem = this.#problem(url, { trusted, proxy })
    if (problem !== undefined) {
      return this.#agent((_options, callback) => { process.nextTick(callback, new OutboundRefused(problem), null) })
    }
    if (proxy?.url !== undefined && !bypassesProxy(proxy.noProxy, url)) return this.#proxyAgent(proxy.url)
    return trusted ? this.#trusted : this.#untrustedOf(owner)
  }

  /**
   * Sends one request and reads the whole answer, of any status. Without `memoryOwner`, the answer counts against the
   * share of `serverMemoryOwner`.
   * @throws UpstreamError as `fetchWhole` does
   */
  async fetch (
    url: string | URL, { trusted, proxy, owner, ...options }: FetchOptions & OutboundAccess
  ): Promise<FetchedResponse> {
    const text = String(url)
    const problem = URL.canParse(text)
      ? this.#problem(new URL(text), { trusted, proxy })
      : 'it is not an absolute http or https address'
    if (problem !== undefined) throw new UpstreamError('unreachable', problem)
    const address = new URL(text)
    const access = { trusted, proxy, owner }
    return await fetchWhole(
      address, this.dispatcher(address, access), { memoryOwner: serverMemoryOwner(access), ...options }
    )
  }

  /**
   * Returns the reason why a URL cannot be used, as far as is known without DNS; undefined if there is none, or if the
   * text is not a URL.
   */
  addressProblem (address: string, access: OutboundAccess): string | undefined {
    if (!URL.canParse(address)) return undefined
    const url = new URL(address)
    const problem = this.#problem(url, access) ?? this.#policy.refusalReason(url.hostname, access.trusted)
    if (problem !== undefined || access.proxy?.url === undefined) return problem
    return this.#policy.refusalReason(new URL(access.proxy.url).hostname, access.trusted)
  }

  async close (): Promise<void> {
    const proxied = [...this.#proxied.values()]
    const agents = [this.#trusted, ...this.#untrusted.values(), ...proxied.map(({ agent }) => agent)]
    await Promise.all(agents.map(async (agent) => { await agent.destroy() }))
    await Promise.all(proxied.map(async ({ close }) => { await close() }))
  }

  /** Returns the agent of one owner's untrusted servers. */
  #untrustedOf (owner: string): Agent {
    const known = this.#untrusted.get(owner)
    if (known) return known
    const agent = this.#agent(this.#connector(this.#resolve ?? createUserResolver(owner, this.#allowed), false))
    this.#untrusted.set(owner, agent)
    return agent
  }

  #proxyAgent (proxy: string): Agent {
    const known = this.#proxied.get(proxy)
    if (known) return known.agent
    const dial = this.#connector(this.#resolve ?? systemResolver, true)
    const { connect, close } = tunnelConnector(new URL(proxy), dial, this.#policy, baseLimits.connectTimeout)
    const agent = this.#agent(connect)
    this.#proxied.set(proxy, { agent, close })
    return agent
  }

  /**
   * Returns the reason why a URL or a proxy setting is invalid; undefined if both are valid. Does not check whether the
   * URL's host may be contacted.
   */
  #problem (url: URL, { trusted, proxy }: OutboundAccess): string | undefined {
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      return `only http and https addresses are supported, not ${url.protocol}`
    }
    if (url.username !== '' || url.password !== '') {
      return 'an address must not contain a user name or password: put credentials into "headers"'
    }
    if (proxy?.url === undefined) return undefined
    if (!trusted) return 'a "proxy" works only in servers that an admin stored'
    const isValid = URL.canParse(proxy.url) && /^https?:$/.test(new URL(proxy.url).protocol)
    return isValid ? undefined : '"proxy.url" must be an absolute http or https address'
  }

  #connector (resolve: HostResolver, trusted: boolean): ReturnType<typeof guardedConnector> {
    return guardedConnector(this.#policy, trusted, resolve, baseLimits.connectTimeout)
  }

  #agent (connect: ReturnType<typeof guardedConnector>): Agent {
    // The number of connections is not limited: an event stream occupies a connection for hours, and calls must not
    // wait for it.
    return new Agent(
      { connect, keepAliveTimeout: 4_000, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: baseLimits.upstreamHeaders }
    )
  }
}

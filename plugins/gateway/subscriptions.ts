import type { Client, Exchange } from '../../protocol/exchange.ts'
import { memberOf, withMembers } from '../../protocol/json.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { Surfaces } from './surfaces.ts'
import type { View } from '../access/view.ts'

/** Which resources clients hear of, at which servers. */
export class Subscriptions {
  readonly #upstreams: Upstreams
  readonly #surfaces: Surfaces

  constructor (upstreams: Upstreams, surfaces: Surfaces) {
    this.#upstreams = upstreams
    this.#surfaces = surfaces
  }

  /** @returns the text of the result @throws RpcError what to answer instead */
  async add (exchange: Exchange<View>): Promise<string> {
    const { client } = exchange
    const { server, key } = await this.#surfaces.reader(exchange)
    return await this.#upstreams.used(server, client).subscriptions.add(client, key, paramsOf(exchange))
  }

  /** @returns the text of the result @throws RpcError what to answer instead */
  async remove (exchange: Exchange<View>): Promise<string> {
    const { client, params: { uri } } = exchange
    // What it subscribed to it may leave, whether it is still shown or not.
    const upstream =
      typeof uri === 'string' ? this.#upstreams.touchedBy(client).find((each) => each.subscriptions.has(client, uri)) : undefined
    if (upstream) return await upstream.subscriptions.remove(client, String(uri), paramsOf(exchange))
    await this.#surfaces.reader(exchange)
    return '{}'
  }

  /** A client hears of resources at those servers only that it would read them from now. @param lost the servers that it does not reach any more: they let go of it themselves */
  move (view: View, client: Client, from: readonly Upstream[], lost: ReadonlySet<Upstream>): void {
    for (const upstream of from) {
      for (const uri of upstream.subscriptions.of(client)) {
        if (!lost.has(upstream) && this.#surfaces.mayRead(view, client, upstream.name, uri)) continue
        const reader = this.#surfaces.readerNow(view, client, uri)
        if (reader !== undefined) this.#upstreams.used(reader, client).subscriptions.add(client, uri).catch(() => {})
        if (!lost.has(upstream)) upstream.subscriptions.remove(client, uri).catch(() => {})
      }
    }
  }
}

/** A request's params for a request of the gateway's own, which has no progress: the client's token could be another's of ours. */
function paramsOf ({ paramsText }: Exchange): string {
  const meta = memberOf(paramsText, '_meta')
  return meta === undefined ? paramsText : withMembers(paramsText, { _meta: withMembers(meta, { progressToken: undefined }) })
}

import type { Asker, Exchange } from '../../protocol/exchange.ts'
import { memberOf, withMembers } from '../../protocol/json.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { Surfaces } from './surfaces.ts'
import type { View } from './view.ts'

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
    const { asker } = exchange
    const { server, key } = await this.#surfaces.reader(exchange)
    return await this.#upstreams.used(server, asker).subscriptions.add(asker, key, paramsOf(exchange))
  }

  /** @returns the text of the result @throws RpcError what to answer instead */
  async remove (exchange: Exchange<View>): Promise<string> {
    const { asker, params: { uri } } = exchange
    // What it subscribed to it may leave, whether it is still shown or not.
    const upstream = typeof uri === 'string' ? this.#upstreams.touchedBy(asker).find((each) => each.subscriptions.has(asker, uri)) : undefined
    if (upstream) return await upstream.subscriptions.remove(asker, String(uri), paramsOf(exchange))
    await this.#surfaces.reader(exchange)
    return '{}'
  }

  /** A client hears of resources at those servers only that it would read them from now. @param lost the servers that it does not reach any more: they let go of it themselves */
  move (view: View, asker: Asker, from: readonly Upstream[], lost: ReadonlySet<Upstream>): void {
    for (const upstream of from) {
      for (const uri of upstream.subscriptions.of(asker)) {
        if (!lost.has(upstream) && this.#surfaces.mayRead(view, asker, upstream.name, uri)) continue
        const reader = this.#surfaces.readerNow(view, asker, uri)
        if (reader !== undefined) this.#upstreams.used(reader, asker).subscriptions.add(asker, uri).catch(() => {})
        if (!lost.has(upstream)) upstream.subscriptions.remove(asker, uri).catch(() => {})
      }
    }
  }
}

/** A request's params for a request of the gateway's own, which has no progress: the client's token could be another's of ours. */
function paramsOf ({ paramsText }: Exchange): string {
  const meta = memberOf(paramsText, '_meta')
  return meta === undefined ? paramsText : withMembers(paramsText, { _meta: withMembers(meta, { progressToken: undefined }) })
}

import { code, RpcError } from '../../../protocol/errors.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import type { Method } from './method.ts'

/** `resources/subscribe`. */
export const subscribe: Method = async ({ resolver, providers, news }, exchange) => {
  const { client } = exchange
  const { provider: name, key } = await resolver.reader(exchange)
  const provider = providers.use(name, client)
  if (!provider.subscribe) throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
  const wanted = news.wantedBy(client)
  const isNew = wanted?.add(client, key) === true
  // It becomes a request of the gateway's own, without the client's progress token, which could equal that of another request.
  try {
    return await provider.subscribe(client, key, withoutProgressToken(exchange.paramsText))
  } catch (error) {
    if (isNew) wanted?.remove(key)
    throw error
  }
}

/** `resources/unsubscribe`. A client may end a subscription whether the resource is still shown or not. */
export const unsubscribe: Method = async ({ resolver, providers, news }, exchange) => {
  const { client, params: { uri } } = exchange
  const wasWanted = typeof uri === 'string' && news.wantedBy(client)?.remove(uri) === true
  const provider = typeof uri === 'string' ? providers.usedBy(client).find((each) => each.subscriptions?.(client).includes(uri)) : undefined
  if (provider?.unsubscribe) return await provider.unsubscribe(client, String(uri), withoutProgressToken(exchange.paramsText))
  if (!wasWanted) await resolver.reader(exchange)
  return '{}'
}

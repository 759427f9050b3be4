import { setTimeout as sleep } from 'node:timers/promises'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { withoutProgressToken } from '../../../protocol/progress.ts'
import { isLogLevel } from '../../../protocol/listener.ts'
import { withoutRelatedTask } from '../../../protocol/task-ids.ts'
import { stringParam } from '../resolve.ts'
import { requireItem } from './items.ts'
import type { MethodHandler } from './method.ts'
import { gatewayLimits } from '../limits.ts'

/** Handles `resources/subscribe`. */
export const subscribe: MethodHandler = async ({ resolver, surfaces, providers, notifier, hooks }, exchange) => {
  const { client } = exchange
  const { provider: name, key } = await resolver.findResource(exchange)
  const provider = providers.use(name, client)
  if (!provider.subscribe) throw new RpcError(rpcCode.methodNotFound, `Method not found: ${exchange.method}`)
  for (const hook of hooks.onSubscribe) {
    const waiting = hook(exchange, name, key)
    if (!waiting) continue
    await waiting
    await requireItem({ resolver, surfaces }, exchange, name, key)
  }
  const wanted = notifier.subscribedResourcesOf(exchange)
  const isNew = wanted?.add(client, key) === true
  try {
    return await provider.subscribe(client, key, paramsTextForServer(exchange))
  } catch (error) {
    if (isNew) wanted?.remove(key)
    throw error
  }
}

/**
 * The params of a request about a subscription or log level, as sent to the server: without the client's progress token
 * and task, since several clients may share the subscription or level.
 */
const paramsTextForServer = ({ paramsText }: Exchange): string => withoutRelatedTask(withoutProgressToken(paramsText))

/** Handles `resources/unsubscribe`. Any URI is accepted, so that the answer does not reveal which resources exist. */
export const unsubscribe: MethodHandler = async ({ providers, notifier }, exchange) => {
  const { client } = exchange
  const uri = stringParam(exchange, 'uri', 'the resource\'s URI')
  notifier.subscribedResourcesOf(exchange)?.remove(uri)
  const provider = providers.usedBy(client).find((each) => each.subscriptions?.(client).includes(uri))
  return await provider?.unsubscribe?.(client, uri, paramsTextForServer(exchange)) ?? '{}'
}

/**
 * Handles `logging/setLevel`. A provider gets the least severe of its clients' levels; for each client, the gateway
 * drops the messages below the level of that client.
 */
export const setLevel: MethodHandler = async ({ resolver, providers }, exchange) => {
  const { client, params: { level }, view: { scope } } = exchange
  if (!isLogLevel(level)) {
    throw new RpcError(rpcCode.invalidParams, 'Invalid params: "level" must be a log level, not ' +
      `${JSON.stringify(level) ?? 'nothing'}`)
  }
  const { capabilities } = await resolver.waitForSurface(exchange)
  const logging = [...capabilities].filter(([, { logging }]) => logging !== undefined).map(([name]) => name)
  if (scope.kind === 'server' && logging.length === 0) {
    throw new RpcError(rpcCode.methodNotFound, 'Method not found: logging/setLevel')
  }
  const { listener } = client
  if (!listener) return '{}'
  const former = listener.level
  listener.level = level
  const { params: { level: _, ...others } } = exchange
  const paramsText = paramsTextForServer(exchange)
  const own = scope.kind === 'server' && Object.keys(others).length > 0 ? paramsText : undefined
  const done = Promise.all(logging.map(async (name) => {
    try {
      await providers.use(name, client).setLevel?.(client, own)
    } catch (error) {
      // Merged routes ignore errors. A provider that is not connected gets the level when it connects.
      if (scope.kind !== 'server' || !(error instanceof RpcError) || error.code === rpcCode.unavailable) return
      listener.level = former
      throw error
    }
  }))
  // On merged routes, the wait is short, since one of the providers may be slow.
  await (scope.kind === 'server'
    ? done
    : Promise.race([done, sleep(gatewayLimits.firstAnswerBudget, undefined, { ref: false })]))
  return '{}'
}

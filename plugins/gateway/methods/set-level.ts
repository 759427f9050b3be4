import { setTimeout as sleep } from 'node:timers/promises'
import { code, RpcError } from '../../../protocol/errors.ts'
import { isLevel } from '../../../protocol/listener.ts'
import { limits } from '../../base/limits/index.ts'
import type { Method } from './method.ts'

/** `logging/setLevel`: requests the lowest level that any client wants of each provider of the view; the gateway filters the rest. */
export const setLevel: Method = async ({ resolver, providers }, exchange) => {
  const { client, params: { level }, view: { scope } } = exchange
  if (!isLevel(level)) {
    throw new RpcError(code.invalidParams, `Invalid params: "level" must be a log level, not ${JSON.stringify(level) ?? 'nothing'}`)
  }
  const { capabilities } = await resolver.settled(exchange)
  const logging = [...capabilities].filter(([, { logging }]) => logging !== undefined).map(([name]) => name)
  if (scope.kind === 'server' && logging.length === 0) throw new RpcError(code.methodNotFound, 'Method not found: logging/setLevel')
  const { listener } = client
  if (!listener) return '{}'
  const former = listener.level
  listener.level = level
  const done = Promise.all(logging.map(async (name) => {
    try {
      await providers.use(name, client).setLevel?.(client)
    } catch (error) {
      // A provider that is not connected gets the level when it connects.
      if (scope.kind !== 'server' || !(error instanceof RpcError) || error.code === code.unavailable) return
      listener.level = former
      throw error
    }
  }))
  // With several providers, none is awaited: one may be slow.
  await (scope.kind === 'server' ? done : Promise.race([done, sleep(limits.firstAnswerBudget, undefined, { ref: false })]))
  return '{}'
}

import { code, RpcError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import { listKinds, type ListKind } from '../../../protocol/lists.ts'
import type { Method } from './method.ts'

/** `tools/list`, `prompts/list`, `resources/list` and `resources/templates/list`. Large ones have several pages. */
export const listMethod = (kind: ListKind): Method => async ({ resolver, news, hooks }, exchange) => {
  const { view, client } = exchange
  const surface = await resolver.settled(exchange)
  resolver.mustBeKnown(view, surface, client)
  if (view.scope.kind === 'server' && !isObject(surface.shown[listKinds[kind].capability])) {
    throw new RpcError(code.methodNotFound, `Method not found: ${exchange.method}`)
  }
  const { list } = surface.parts[kind]
  news.saw(client, list)
  let { entries } = list
  for (const hook of hooks.onList) { const next = hook(exchange, kind, entries); entries = next instanceof Promise ? await next : next }
  return (entries === list.entries ? list : list.with(entries)).page(exchange.params.cursor)
}

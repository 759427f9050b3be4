import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { requestingInstance, markItemForwarded } from '../../../protocol/instance.ts'
import { declaresList, listExtensionOf, type ListKind, type NamedKind } from '../../../protocol/lists.ts'
import type { View } from '../../settings/index.ts'
import {
  NotConnectedError, stringParam, unknownFolderError, unknownResourceError, unknownSkillError
} from '../resolve.ts'
import { findResourceTarget, type Surface } from '../surface.ts'
import type { GatewayParts, MethodHandler } from './method.ts'
import { needsTask, recordCreatedTask } from './tasks.ts'

/** Handles `tools/call`. */
export async function callTool (parts: GatewayParts, exchange: Exchange<View>): Promise<string> {
  const { resolver, surfaces, forwarder, links } = parts
  const { view } = exchange
  const name = stringParam(exchange, 'name', 'the tool\'s name')
  // A name that is already known is resolved without `await`, since most calls have such a name.
  const surface = surfaces.of(view, exchange.client)
  const target = resolver.lookUpName(view, surface, 'tools', name) ??
    await resolveOrFailCall(parts, exchange, name, async () => await resolver.findByName(exchange, 'tools', name))
  if (!target) throw unknownTool(name, surface)
  if (target.redirect) return await target.redirect(exchange, (other) => callTool(parts, other))
  const changes: Record<string, string> = { name: JSON.stringify(target.key) }
  if (target.item && needsTask(target.item) && exchange.taskForm !== 'parameter') changes.task = '{}'
  const result = await forwarder.send(exchange, target.provider, target.key, changes)
  if (view.presentation !== 'raw') links.record(result, view.principal.key, target.provider)
  return exchange.taskForm === undefined
    ? result
    : recordCreatedTask(parts, exchange, target.provider, target.key, result)
}

/**
 * Runs `resolve`, which finds the item of a request. If it throws a NotConnectedError, hooks see a failed call.
 * @param item the name or URI in the request, for the hooks
 * @throws the errors of `resolve`, as changed by `onError` hooks
 */
export async function resolveOrFailCall<Found> (
  { forwarder }: Pick<GatewayParts, 'forwarder'>, exchange: Exchange<View>, item: string, resolve: () => Promise<Found>
): Promise<Found> {
  const startedAt = performance.now()
  try {
    return await resolve()
  } catch (error) {
    if (!(error instanceof NotConnectedError)) throw error
    return await forwarder.fail(exchange, error.provider, error.item ?? item, startedAt, error)
  }
}

const unknownTool = (name: string, surface: Surface): RpcError =>
  new RpcError(rpcCode.invalidParams, `Unknown tool: ${name}${surface.parts.tools.hint ?? ''}`, 'unknown-tool')
const unknownPrompt = (name: string): RpcError =>
  new RpcError(rpcCode.invalidParams, `Unknown prompt: ${name}`, 'unknown-prompt')

const unknownTemplate = (uri: string): RpcError =>
  new RpcError(rpcCode.invalidParams, `Unknown resource template: ${uri}`, 'unknown-resource')

/** The error for a request whose item the view does not show: the same as if the item did not exist. */
export function unknownItemError ({ method, params: { name, uri, ref } }: Exchange): RpcError {
  switch (method) {
    case 'tools/call': return new RpcError(rpcCode.invalidParams, `Unknown tool: ${String(name)}`, 'unknown-tool')
    case 'prompts/get': return unknownPrompt(String(name))
    case 'completion/complete':
      return isObject(ref) && ref.type === 'ref/prompt'
        ? unknownPrompt(String(ref.name))
        : unknownTemplate(isObject(ref) ? String(ref.uri) : '')
    case 'skills/get': return unknownSkillError(String(uri))
    case 'resources/directory/read': return unknownFolderError(String(uri))
    default: return unknownResourceError(String(uri))
  }
}

/**
 * Finds the provider of the tool, prompt or resource that a request names.
 * @throws RpcError if the view does not show the item
 */
export async function findItemProvider (parts: GatewayParts, exchange: Exchange<View>): Promise<string> {
  const { resolver, surfaces } = parts
  const { view, client, method, params: { name } } = exchange
  if (method === 'resources/read') return (await resolver.findResource(exchange)).provider
  const kind = method === 'tools/call' ? 'tools' : 'prompts'
  const target = await resolver.findByName(exchange, kind, String(name))
  if (!target) {
    throw kind === 'tools' ? unknownTool(String(name), surfaces.of(view, client)) : unknownPrompt(String(name))
  }
  let provider = target.provider
  // If the tool calls another tool, finds the provider of that other tool, without calling either of them.
  await target.redirect?.(exchange, async (other) => {
    provider = await findItemProvider(parts, other)
    return '{}'
  })
  return provider
}

/** The methods whose params name an item, with the kind of that item. */
const itemKinds: ReadonlyMap<string, NamedKind | 'resources' | 'completed'> = new Map([
  ['tools/call', 'tools'], ['prompts/get', 'prompts'], ['resources/read', 'resources'],
  ['resources/subscribe', 'resources'], ['completion/complete', 'completed']
])

/**
 * Checks again that the view of a request shows the item that was found for it, since the settings may have changed.
 * @param key the provider's name of the tool or prompt, or the URI of the resource
 * @throws RpcError as for an unknown item; -32001 if the provider is not available now
 */
export async function requireItem (
  { resolver, surfaces }: Pick<GatewayParts, 'resolver' | 'surfaces'>, exchange: Exchange<View>, provider: string,
  key: string | undefined
): Promise<void> {
  const { method, params, paramsText, view: { unfiltered = exchange.view }, address } = exchange
  const kind = itemKinds.get(method)
  if (kind === undefined) return
  const current = new DerivedExchange(exchange, { view: surfaces.filtered(unfiltered, address), params, paramsText })
  const target = kind === 'completed'
    ? await findCompleted(resolver, current)
    : kind === 'resources'
      ? await resolver.findResource(current)
      : await resolver.findByName(current, kind, String(params.name))
  if (target?.provider !== provider || target.key !== key) throw unknownItemError(exchange)
}

/** Handles `prompts/get`. */
export const getPrompt: MethodHandler = async (parts, exchange) => {
  const { resolver, forwarder } = parts
  const name = stringParam(exchange, 'name', 'the prompt\'s name')
  const target = await resolveOrFailCall(parts, exchange, name, async () =>
    await resolver.findByName(exchange, 'prompts', name))
  if (!target) throw unknownPrompt(name)
  return await forwarder.send(exchange, target.provider, target.key, { name: JSON.stringify(target.key) })
}

/** Handles `resources/read`. */
export const readResource: MethodHandler = async (parts, exchange) => {
  const { resolver, forwarder } = parts
  const target =
    await resolveOrFailCall(
      parts, exchange, String(exchange.params.uri), async () => await resolver.findResource(exchange)
    )
  return await forwarder.send(exchange, target.provider, target.key, { uri: JSON.stringify(target.key) })
}

/** Handles `completion/complete`, for an argument of a prompt or a resource template. */
export const completionComplete: MethodHandler = async ({ resolver, forwarder }, exchange) => {
  const { provider, key, isPrompt } = await findCompleted(resolver, exchange)
  if (!isPrompt) return await forwarder.send(exchange, provider, key)
  const refText = memberOf(exchange.paramsText, 'ref') ?? '{}'
  return await forwarder.send(exchange, provider, key, { ref: withMembers(refText, { name: JSON.stringify(key) }) })
}

/**
 * Finds the prompt or resource template whose argument a client asks to complete.
 * @returns `key`: the provider's name of the prompt, or the URI in the request
 * @throws RpcError if the view does not show it
 */
async function findCompleted (
  resolver: GatewayParts['resolver'], exchange: Exchange<View>
): Promise<{ provider: string, key: string, isPrompt: boolean }> {
  const { ref } = exchange.params
  if (isObject(ref) && ref.type === 'ref/prompt' && typeof ref.name === 'string') {
    const target = await resolver.findByName(exchange, 'prompts', ref.name)
    if (!target) throw unknownPrompt(ref.name)
    return { provider: target.provider, key: target.key, isPrompt: true }
  }
  if (isObject(ref) && ref.type === 'ref/resource' && typeof ref.uri === 'string') {
    const { uri } = ref
    const target = await resolver.find(exchange, (surface) =>
      surface.parts.resourceTemplates.targets.get(uri) ?? findResourceTarget(surface, uri))
    if (!target) throw unknownTemplate(uri)
    return { provider: target.provider, key: uri, isPrompt: false }
  }
  throw new RpcError(rpcCode.invalidParams, 'Invalid params: "ref" must be a ref/prompt with a name or a ' +
    'ref/resource with a uri')
}

/** Creates the handler of a list method, such as `tools/list`. Large lists have several pages. */
export const createListMethod = (kind: ListKind): MethodHandler => async ({ resolver, notifier, hooks }, exchange) => {
  const { view, client } = exchange
  const surface = await resolver.waitForSurface(exchange)
  resolver.requireCatalogue(view, surface, client)
  // On merged routes, a list of MCP itself that no server announces is empty, since clients request it nevertheless.
  if (
    (view.scope.kind === 'server' || listExtensionOf(kind) !== undefined) && !declaresList(surface.announced, kind)
  ) {
    throw new RpcError(rpcCode.methodNotFound, `Method not found: ${exchange.method}`)
  }
  const { list } = surface.parts[kind]
  notifier.recordSeenList(exchange, list)
  let { entries } = list
  for (const hook of hooks.onList) {
    const next = hook(exchange, kind, entries)
    entries = next instanceof Promise ? await next : next
  }
  const asking = requestingInstance(exchange.params)
  if (asking !== undefined) {
    entries = entries.flatMap((entry) => {
      const text = markItemForwarded(entry.text, asking)
      return text === undefined ? [] : [{ ...entry, text }]
    })
  }
  return (entries === list.entries ? list : list.withEntries(entries)).page(exchange.params.cursor)
}

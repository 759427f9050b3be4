import { code, RpcError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import type { View } from '../../access/view.ts'
import { readerOf } from '../surface.ts'
import type { GatewayParts, Method } from './method.ts'

/** `tools/call`. */
export async function callTool (parts: GatewayParts, exchange: Exchange<View>): Promise<string> {
  const { resolver, surfaces, forwarder, tasks, links } = parts
  const { view, params } = exchange
  const { name } = params
  if (typeof name !== 'string') throw new RpcError(code.invalidParams, 'Invalid params: "name" must be the tool\'s name')
  // Known names are resolved without awaiting, since this is the path of every call.
  const surface = surfaces.of(view, exchange.client)
  const target = resolver.byName(view, surface, 'tools', name) ?? await resolver.named(exchange, 'tools', name)
  if (!target) throw new RpcError(code.invalidParams, `Unknown tool: ${name}${surface.parts.tools.hint ?? ''}`, 'unknown-tool')
  if (target.redirect) return await target.redirect(exchange, (other) => callTool(parts, other))
  const result = await forwarder.send(exchange, target.provider, target.key, { name: JSON.stringify(target.key) })
  if (params.task !== undefined) tasks.note(result, { principal: view.principal.key, provider: target.provider })
  if (view.presentation !== 'raw') links.note(result, view.principal.key, target.provider)
  return result
}

/** `prompts/get`. */
export const getPrompt: Method = async ({ resolver, forwarder }, exchange) => {
  const { name } = exchange.params
  if (typeof name !== 'string') throw new RpcError(code.invalidParams, 'Invalid params: "name" must be the prompt\'s name')
  const target = await resolver.named(exchange, 'prompts', name)
  if (!target) throw new RpcError(code.invalidParams, `Unknown prompt: ${name}`, 'unknown-prompt')
  return await forwarder.send(exchange, target.provider, target.key, { name: JSON.stringify(target.key) })
}

/** `resources/read`. */
export const readResource: Method = async ({ resolver, forwarder }, exchange) => {
  const target = await resolver.reader(exchange)
  return await forwarder.send(exchange, target.provider, target.key, { uri: JSON.stringify(target.key) })
}

/** `completion/complete`: for an argument of a prompt, or of a resource template. */
export const complete: Method = async ({ resolver, forwarder }, exchange) => {
  const { ref } = exchange.params
  if (isObject(ref) && ref.type === 'ref/prompt' && typeof ref.name === 'string') {
    const target = await resolver.named(exchange, 'prompts', ref.name)
    if (!target) throw new RpcError(code.invalidParams, `Unknown prompt: ${ref.name}`, 'unknown-prompt')
    const refText = memberOf(exchange.paramsText, 'ref') ?? '{}'
    return await forwarder.send(exchange, target.provider, undefined, { ref: withMembers(refText, { name: JSON.stringify(target.key) }) })
  }
  if (isObject(ref) && ref.type === 'ref/resource' && typeof ref.uri === 'string') {
    const { uri } = ref
    const target = await resolver.find(exchange, (surface) => surface.parts.resourceTemplates.targets.get(uri) ?? readerOf(surface, uri))
    if (!target) throw new RpcError(code.invalidParams, `Unknown resource template: ${uri}`, 'unknown-resource')
    return await forwarder.send(exchange, target.provider, undefined)
  }
  throw new RpcError(code.invalidParams, 'Invalid params: "ref" must be a ref/prompt with a name or a ref/resource with a uri')
}

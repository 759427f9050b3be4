import type { Snapshot } from '../../../db/store.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange } from '../../../protocol/exchange.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { Response } from '../../../protocol/message.ts'
import type { Provider } from '../../../protocol/provider.ts'
import { isObject } from '../../../protocol/json.ts'
import type { BuiltInPrompt } from '../../../schemas/builtins.ts'
import { changedUris, collectBuiltIns, builtInProviderName, type BuiltInItems } from './items.ts'
import { gatewayLimits } from '../limits.ts'

interface ResourceSubscriber { readonly client: Client, readonly uris: Set<string> }

/** Provides the built-in prompts and resources. */
export class BuiltInProvider implements Provider {
  readonly name = builtInProviderName
  readonly #version: string
  readonly #subscribers = new Map<string, ResourceSubscriber>()
  #items: BuiltInItems

  /** @param version the version of the gateway */
  constructor (snapshot: Snapshot, version: string) {
    this.#version = version
    this.#items = collectBuiltIns(snapshot, version)
  }

  /** Applies changed settings, and notifies subscribers of changed resources. @returns whether a list has changed */
  update (snapshot: Snapshot): boolean {
    const former = this.#items
    this.#items = collectBuiltIns(snapshot, this.#version, former)
    for (const uri of changedUris(former, this.#items)) {
      for (const { client, uris } of this.#subscribers.values()) {
        if (uris.has(uri)) client.listener?.deliver('notifications/resources/updated', JSON.stringify({ uri }))
      }
    }
    return this.#items.catalogue !== former.catalogue
  }

  catalogue (): Catalogue { return this.#items.catalogue }
  catalogues (): readonly Catalogue[] { return [this.#items.catalogue] }

  async call ({ method, params }: Exchange, changes: Readonly<Record<string, string>>): Promise<Response> {
    switch (method) {
      case 'prompts/get': return toResponse(
        this.#prompt(requestedItemKey(params.name, changes.name), params.arguments ?? undefined)
      )
      case 'resources/read': return toResponse(this.#resource(requestedItemKey(params.uri, changes.uri)))
      case 'completion/complete': return toResponse({ completion: { values: [], total: 0, hasMore: false } })
      default: throw new RpcError(rpcCode.methodNotFound, `Method not found: ${method}`)
    }
  }

  async subscribe (client: Client, uri: string): Promise<string> {
    this.#resourceAt(uri)
    const subscriber = this.#subscribers.get(client.id)
    if (subscriber) subscriber.uris.add(uri)
    else this.#subscribers.set(client.id, { client, uris: new Set([uri]) })
    return '{}'
  }

  async unsubscribe (client: Client, uri: string): Promise<string> {
    const subscriber = this.#subscribers.get(client.id)
    if (subscriber?.uris.delete(uri) === true && subscriber.uris.size === 0) this.#subscribers.delete(client.id)
    return '{}'
  }

  subscriptions (client: Client): string[] { return [...this.#subscribers.get(client.id)?.uris ?? []] }

  async release (client: Client): Promise<void> { this.#subscribers.delete(client.id) }

  /** The result of `prompts/get`. @throws RpcError -32602 */
  #prompt (name: string, given: unknown): object {
    const prompt = this.#items.prompts.get(name)
    if (!prompt) throw new RpcError(rpcCode.invalidParams, `Unknown prompt: ${name}`, 'unknown-prompt')
    return {
      description: prompt.description,
      messages: [
        { role: 'user', content: { type: 'text', text: fillPrompt(prompt, given) } }
      ]
    }
  }

  /** The result of `resources/read`. @throws RpcError -32002 */
  #resource (uri: string): object {
    const { mimeType, content } = this.#resourceAt(uri)
    return { contents: [{ uri, mimeType, text: content }] }
  }

  /** @throws RpcError -32002 */
  #resourceAt (uri: string): { mimeType?: string, content: string } {
    const resource = this.#items.resources.get(uri)
    if (!resource) throw new RpcError(rpcCode.resourceNotFound, `Resource not found: ${uri}`, 'unknown-resource')
    return resource
  }
}

/**
 * Returns the name or URI of the requested item at its provider.
 * @param sent the name or URI in the client's request
 * @param changed the name or URI by which the gateway has replaced it, as JSON text; undefined if it was not replaced
 */
export const requestedItemKey = (sent: unknown, changed: string | undefined): string =>
  String(changed === undefined ? sent : JSON.parse(changed))

const toResponse = (result: object): Response =>
  ({ kind: 'response', id: null, resultText: JSON.stringify(result) })

/**
 * Fills in a prompt: replaces each `{{name}}` (spaces around the name are allowed) by the argument of that name. A
 * missing optional argument is empty. Placeholders of unknown arguments, and those in arguments' values, are kept.
 * @param given `params.arguments` of the request: strings by name
 * @throws RpcError -32602 if arguments are missing or not strings, or make the text larger than
 * `gatewayLimits.builtIns.filled`
 */
export function fillPrompt ({ name, template, arguments: declared = [] }: BuiltInPrompt, given: unknown = {}): string {
  if (!isObject(given)) throw invalidParams('"arguments" must be an object of strings')
  const values = new Map<string, string>()
  for (const [key, value] of Object.entries(given)) {
    if (typeof value !== 'string') throw invalidParams(`the argument ${JSON.stringify(key)} must be a string`)
    values.set(key, value)
  }
  const missing =
    declared.filter((each) => each.required === true && !values.has(each.name)).map((each) => JSON.stringify(each.name))
  if (missing.length > 0) {
    const [noun, verb] = missing.length === 1 ? ['argument', 'is'] : ['arguments', 'are']
    throw invalidParams(`the ${noun} ${missing.join(', ')} of the prompt ${JSON.stringify(name)} ${verb} required`)
  }
  const names = new Set(declared.map((each) => each.name))
  let size = template.length
  return template.replace(/\{\{([^{}]*)\}\}/g, (place, inside: string) => {
    const key = inside.trim()
    const value = values.get(key) ?? (names.has(key) ? '' : place)
    size += value.length - place.length
    if (value !== place && size > gatewayLimits.builtIns.filled) {
      throw invalidParams(
        `the prompt with these arguments would be longer than ${gatewayLimits.builtIns.filled} characters`
      )
    }
    return value
  })
}

const invalidParams = (reason: string): RpcError => new RpcError(rpcCode.invalidParams, `Invalid params: ${reason}`)

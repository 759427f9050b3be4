import type { Snapshot } from '../../../db/store.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange } from '../../../protocol/exchange.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { Response } from '../../../protocol/message.ts'
import type { Provider } from '../../../protocol/provider.ts'
import { isObject } from '../../../protocol/json.ts'
import type { BuiltInPrompt } from '../../../schemas/builtins.ts'
import { changedUris, itemsOf, builtInProviderName, type BuiltInItems } from './items.ts'
import { gatewayLimits } from '../limits.ts'

/** The client of some subscriptions, and their URIs. There are no more than resources. */
interface Subscriber { readonly client: Client, readonly uris: Set<string> }

/** The built-in prompts and resources, as a provider of the gateway. */
export class BuiltInProvider implements Provider {
  readonly name = builtInProviderName
  readonly #version: string
  readonly #subscribers = new Map<string, Subscriber>()
  #items: BuiltInItems

  /** @param version the gateway's own */
  constructor (snapshot: Snapshot, version: string) {
    this.#version = version
    this.#items = itemsOf(snapshot, version)
  }

  /**
   * Takes changed settings, and tells subscribers of resources that are read as something else now.
   * @returns whether a list is another one
   */
  update (snapshot: Snapshot): boolean {
    const former = this.#items
    this.#items = itemsOf(snapshot, this.#version, former)
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
      case 'prompts/get': return answer(this.#prompt(ownKey(params.name, changes.name), params.arguments ?? undefined))
      case 'resources/read': return answer(this.#resource(ownKey(params.uri, changes.uri)))
      case 'completion/complete': return answer({ completion: { values: [], total: 0, hasMore: false } })
      default: throw new RpcError(code.methodNotFound, `Method not found: ${method}`)
    }
  }

  async subscribe (client: Client, uri: string): Promise<string> {
    this.#mustHave(uri)
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

  #prompt (name: string, given: unknown): object {
    const prompt = this.#items.prompts.get(name)
    if (!prompt) throw new RpcError(code.invalidParams, `Unknown prompt: ${name}`, 'unknown-prompt')
    return {
      description: prompt.description,
      messages: [
        { role: 'user', content: { type: 'text', text: fill(prompt, given) } }
      ]
    }
  }

  #resource (uri: string): object {
    const { mimeType, content } = this.#mustHave(uri)
    return { contents: [{ uri, mimeType, text: content }] }
  }

  /** @throws RpcError -32002 */
  #mustHave (uri: string): { mimeType?: string, content: string } {
    const resource = this.#items.resources.get(uri)
    if (!resource) throw new RpcError(code.resourceNotFound, `Resource not found: ${uri}`, 'unknown-resource')
    return resource
  }
}

/** The item's own name, which the gateway may have put in the place of the one that the client sent. */
const ownKey = (sent: unknown, changed: string | undefined): string =>
  String(changed === undefined ? sent : JSON.parse(changed))

const answer = (result: object): Response => ({ kind: 'response', id: null, resultText: JSON.stringify(result) })

/**
 * The text of a prompt with its arguments. Each `{{name}}` (also with spaces inside) is replaced once, by the value as
 * it is: placeholders in values stay. Optional arguments that are not given are empty; placeholders of no argument stay
 * as written.
 * @param given `params.arguments` of the request: texts by name
 * @throws RpcError -32602 for arguments that are missing or no texts, or make the text larger than
 * `gatewayLimits.builtIns.filled`
 */
export function fill ({ name, template, arguments: declared = [] }: BuiltInPrompt, given: unknown = {}): string {
  if (!isObject(given)) throw invalid('"arguments" must be an object of texts')
  const values = new Map<string, string>()
  for (const [key, value] of Object.entries(given)) {
    if (typeof value !== 'string') throw invalid(`the argument ${JSON.stringify(key)} must be a text`)
    values.set(key, value)
  }
  const missing =
    declared.filter((each) => each.required === true && !values.has(each.name)).map((each) => JSON.stringify(each.name))
  if (missing.length > 0) {
    const [noun, verb] = missing.length === 1 ? ['argument', 'is'] : ['arguments', 'are']
    throw invalid(`the ${noun} ${missing.join(', ')} of the prompt ${JSON.stringify(name)} ${verb} required`)
  }
  const names = new Set(declared.map((each) => each.name))
  let size = template.length
  return template.replace(/\{\{([^{}]*)\}\}/g, (place, inside: string) => {
    const key = inside.trim()
    const value = values.get(key) ?? (names.has(key) ? '' : place)
    size += value.length - place.length
    if (value !== place && size > gatewayLimits.builtIns.filled) {
      throw invalid(`the prompt with these arguments would be longer than ${gatewayLimits.builtIns.filled} characters`)
    }
    return value
  })
}

const invalid = (reason: string): RpcError => new RpcError(code.invalidParams, `Invalid params: ${reason}`)

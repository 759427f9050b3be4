import { plainClient, type Client, type Exchange } from '../../protocol/exchange.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import type { Listener } from '../../protocol/listener.ts'
import type { Provider, ProviderHost, ProviderSource } from '../../protocol/provider.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Access } from '../access/index.ts'
import type { View } from '../access/view.ts'
import { describe, type Description } from './describe.ts'
import { Forwarder } from './forward.ts'
import { noHooks, type GatewayHooks } from './hooks.ts'
import { isNotification, methodFor } from './methods/index.ts'
import type { GatewayParts, Result } from './methods/method.ts'
import { News } from './news.ts'
import { Providers } from './providers.ts'
import { ResourceLinks } from './resource-links.ts'
import { Resolver } from './resolve.ts'
import type { Section } from './section.ts'
import type { Surface, Target } from './surface.ts'
import { Surfaces } from './surfaces.ts'
import { TaskOwners } from './task-owners.ts'

export type { Result }

export interface GatewayDeps {
  access: Pick<Access, 'snapshot' | 'visible' | 'register'>
  /** The gateway's own, for routes that merge several servers. */
  serverInfo: { name: string, version: string }
  logError: (error: unknown, sentence: string) => void
}

/** How a provider that is registered by the program is seen: as a server with this config would be. */
export type ProviderEntry = Pick<ServerConfig, 'owner' | 'visibility' | 'description' | 'enabled' | 'tools' | 'prompts' | 'resources'>

/** Everything that lists or runs a tool, prompt or resource goes through here, with a View. */
export class Gateway {
  readonly #parts: GatewayParts
  readonly #access: GatewayDeps['access']
  readonly #serverInfo: string
  readonly #host: ProviderHost

  constructor ({ access, serverInfo, logError }: GatewayDeps) {
    const providers = new Providers()
    const surfaces = new Surfaces(access, providers)
    const links = new ResourceLinks()
    const resolver = new Resolver(surfaces, providers, links)
    const hooks = noHooks()
    const forwarder = new Forwarder(providers, hooks, logError)
    const news = new News(providers, surfaces, resolver)
    this.#parts = { providers, surfaces, resolver, forwarder, news, hooks, tasks: new TaskOwners(), links }
    this.#access = access
    this.#serverInfo = JSON.stringify(serverInfo)
    this.#host = {
      changed: () => { providers.changed(); news.changed() },
      question: async (...question) => { for (const hook of hooks.onQuestion) await hook(...question) },
      broadcast: (...message) => { news.broadcast(...message) }
    }
  }

  /** Registers a hook. Hooks run in the order of registration. */
  addHook<Name extends keyof GatewayHooks> (name: Name, hook: GatewayHooks[Name]): void {
    this.#parts.hooks[name].push(hook)
  }

  /** Registers a changing set of providers. Their names are those of configured servers. */
  addSource (source: ProviderSource): void { this.#parts.providers.addSource(source, this.#host) }

  /**
   * Registers one provider of the program's own.
   * @param entry who sees it, and its overrides; by default everybody does
   * @returns tells the gateway that it lists something else now
   */
  addProvider (provider: Provider, entry: ProviderEntry = { visibility: 'public' }): () => void {
    this.#access.register({ name: provider.name, config: entry })
    this.#parts.providers.add(provider)
    this.#host.changed()
    return this.#host.changed
  }

  /**
   * Does one request.
   * @returns the text of its result, or a list to be written
   * @throws RpcError to be answered instead
   */
  handle (exchange: Exchange<View>): Promise<Result> {
    return methodFor(exchange.method)(this.#parts, exchange)
  }

  /** Passes a client's notification on to the providers that its view sees, as it came. */
  notify (view: View, client: Client, method: string, paramsText: string): void {
    const isForAll = method === 'notifications/roots/list_changed'
    if (!isNotification(method) || (!isForAll && view.scope.kind !== 'server')) return
    for (const { provider } of this.#parts.surfaces.sections(view, client)) provider?.notify?.(client, method, paramsText)
  }

  /** How a route introduces itself. Waits for providers that have never been seen. @throws RpcError when a single server is not there */
  async describe (view: View, client: Client): Promise<Description> {
    return await describe(this.#parts, view, client, this.#serverInfo)
  }

  /** Notifies a listener of everything that changes from now on. */
  join (listener: Listener<View>, client: Client): void { this.#parts.news.join(listener, client) }

  /** A client is gone: its listener is forgotten, and all that providers remember of it ends. */
  async forget (client: Client): Promise<void> {
    if (client.listener) this.#parts.news.leave(client.listener as Listener<View>)
    await this.#parts.providers.release(client)
  }

  /** The settings changed: clients lose what their views do not see any more. */
  withdraw (): void { this.#parts.news.withdraw() }

  /** What a view shows to a client of this kind now. */
  surface (view: View, client: Client): Surface { return this.#parts.surfaces.of(view, client) }

  /** The servers that a view sees now, with what each lists to this client under its own names. */
  sections (view: View, client: Client): Section[] { return this.#parts.surfaces.sections(view, client) }

  /** Where the name of a tool or prompt leads, as far as is known now. */
  lookUp (view: View, client: Client, kind: 'tools' | 'prompts', name: string): Target | undefined {
    return this.#parts.resolver.byName(view, this.surface(view, client), kind, name)
  }

  /** The same; waits for a provider that is connecting. @throws RpcError -32001 when a single provider cannot be asked */
  async resolve (exchange: Exchange<View>, kind: 'tools' | 'prompts', name: string): Promise<Target | undefined> {
    return await this.#parts.resolver.named(exchange, kind, name)
  }

  /** The name under which a view shows a tool or prompt of a provider; undefined: it does not, as far as is known now. */
  exposedName (view: View, client: Client, kind: 'tools' | 'prompts', provider: string, key: string): string | undefined {
    return this.#parts.resolver.exposed(view, this.surface(view, client), kind, provider, key)
  }

  /**
   * Waits until it is known what one provider lists to this client.
   * @throws RpcError -32001 when it cannot be asked and nothing is known of it
   */
  async learn (provider: string, client: Client): Promise<void> { await this.#parts.resolver.learn(provider, client) }

  /** What one provider lists to clients that declare no capabilities, under its own names; undefined: nothing is known. */
  catalogue (provider: string): Catalogue | undefined { return this.#parts.providers.get(provider)?.catalogue(plainClient) }

  /** What one provider lists to clients of every kind, as far as is known. */
  catalogues (provider: string): readonly Catalogue[] { return this.#parts.providers.get(provider)?.catalogues?.() ?? [] }

  /** A text of a provider without the secrets of its configuration. */
  redact (provider: string, text: string): string {
    return this.#parts.providers.get(provider)?.redact?.(text) ?? text
  }

  /** Resolves when all that clients left behind is released. */
  async close (): Promise<void> {
    this.#parts.news.close()
    await this.#parts.providers.released()
  }
}

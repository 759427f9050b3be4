import fp from 'fastify-plugin'
import {
  type Field, type Installation, type MarketEntry, type MarketFile, MarketFile as Schema, type MarketServer
} from '../../../schemas/catalogues.ts'
import { problemOf } from '../../../schemas/problem.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { readAssetSync } from '../../base/config/index.ts'
import { noSuchError } from '../../base/errors/index.ts'
import { Cloud } from './cloud.ts'
import { Registry } from './registry.ts'
import { Source } from './source.ts'

/** The catalogue in the package. It is read once. */
class Market {
  readonly #servers: readonly MarketServer[]

  /** @param text the content of `assets/market/servers.json` @throws Error if it is invalid */
  constructor (text: string) {
    const file: unknown = JSON.parse(text)
    const wrong = problemOf(Schema, file)
    if (wrong) throw new Error(`assets/market/servers.json: "${wrong.path}": ${wrong.message}`)
    this.#servers = (file as MarketFile).servers.map(withConfig)
  }

  list (): readonly MarketServer[] { return this.#servers }

  /** The servers whose name, description, categories or tags hold each word of a query. */
  search (query: string): readonly MarketServer[] {
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== '')
    return this.#servers.filter(({ name, display_name: title, description, categories, tags }) => {
      const text = [name, title, description, ...categories, ...tags].join('\n').toLowerCase()
      return words.every((word) => text.includes(word))
    })
  }

  /** @throws NoSuch */
  server (name: string): MarketServer {
    const server = this.#servers.find((each) => each.name === name)
    if (!server) throw noSuchError('server in this catalogue', name)
    return server
  }

  categories (): string[] { return sorted(this.#servers.flatMap(({ categories }) => categories)) }
  tags (): string[] { return sorted(this.#servers.flatMap(({ tags }) => tags)) }

  /** The servers of a category, ignoring case; none for an unknown category. */
  inCategory (name: string): readonly MarketServer[] {
    return this.#servers.filter(({ categories }) => includes(categories, name))
  }

  withTag (name: string): readonly MarketServer[] { return this.#servers.filter(({ tags }) => includes(tags, name)) }
}

const sorted = (texts: readonly string[]): string[] => [...new Set(texts)].sort((a, b) => a.localeCompare(b, 'en'))
const includes = (texts: readonly string[], wanted: string): boolean =>
  texts.some((text) => text.toLowerCase() === wanted.toLowerCase())

/** An entry with the config of its first installation method and the inputs of that config. */
function withConfig (entry: MarketEntry): MarketServer {
  const [first] = Object.values(entry.installations)
  if (!first) throw new Error(`assets/market/servers.json: ${entry.name} has no installation`)
  const config = configOf(first)
  const text = JSON.stringify(config)
  const required = Object.entries(entry.arguments)
    .filter(([key, each]) => each.required && text.includes(`\${${key}}`))
    .map((
      [key, { description, example, sensitive = false }]
    ): Field => ({ key, description, sensitive, placeholder: example }))
  return { ...entry, config, required }
}

/** The config of one installation method. */
const configOf = ({ command, args, env, url, headers }: Installation): ServerConfig => url === undefined
  ? { type: 'stdio', command, args, ...(env && { env }) }
  : { type: 'streamable-http', url, ...(headers && { headers }) }

/** The npm package of an entry: the first argument of npx that is not an option; undefined: none. */
export function packageOf ({ installations: { npm } }: MarketEntry): string | undefined {
  const name = npm?.args?.find((arg) => !arg.startsWith('-'))
  // Without a version: `@scope/name@1.2.3`.
  return name?.replace(/(?<=.)@[^/]*$/, '')
}

interface Catalogues { readonly market: Market, readonly cloud: Cloud, readonly registry: Registry }

declare module 'fastify' {
  interface FastifyInstance { catalogues: Catalogues }
}

/** `app.catalogues`: servers that can be added with `POST /api/servers`. The catalogues are read-only. */
export default fp(async (app) => {
  const sourceOf = (name: string): Source => new Source({
    outbound: app.outbound,
    name,
    tell: (level, sentence) => { app.log[level](sentence) }
  })
  const [registry, cloud] = [sourceOf('The MCP registry'), sourceOf('The cloud catalogue')]
  let market: Market | undefined
  app.decorate('catalogues', {
    get market () {
      market ??= new Market(readAssetSync('market/servers.json'))
      return market
    },
    cloud: new Cloud(cloud, () => (app.settings.current.system as { mcpRouter?: object }).mcpRouter ?? {}),
    registry: new Registry(registry, app.config.env.REGISTRY_URL)
  })
  app.addHook('onClose', async () => {
    registry.close()
    cloud.close()
  })
}, { name: 'catalogues', dependencies: ['config', 'settings', 'outbound'] })

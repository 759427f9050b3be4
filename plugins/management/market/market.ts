import fp from 'fastify-plugin'
import {
  type RequiredInput, type Installation, type MarketEntry, type MarketFile, MarketFile as Schema, type MarketServer
} from '../../../schemas/catalogues.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { readAssetSync } from '../../base/config/index.ts'
import { noSuchError } from '../../base/errors/index.ts'
import { CloudCatalogue } from './cloud.ts'
import { RegistryClient } from './registry.ts'
import { CatalogueSource } from './source.ts'

/** The catalogue that is part of the package: `assets/market/servers.json`. */
class PackagedCatalogue {
  readonly #servers: readonly MarketServer[]

  /** @param text the content of `assets/market/servers.json` @throws Error if it is invalid */
  constructor (text: string) {
    const file: unknown = JSON.parse(text)
    const problem = firstSchemaProblem(Schema, file)
    if (problem) throw new Error(`assets/market/servers.json: "${problem.path}": ${problem.message}`)
    this.#servers = (file as MarketFile).servers.map(withConfig)
  }

  listServers (): readonly MarketServer[] { return this.#servers }

  /** Returns the servers for which each word of a query occurs in the name, title, description, categories or tags. */
  search (query: string): readonly MarketServer[] {
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== '')
    return this.#servers.filter(({ name, display_name: title, description, categories, tags }) => {
      const text = [name, title, description, ...categories, ...tags].join('\n').toLowerCase()
      return words.every((word) => text.includes(word))
    })
  }

  /** Returns one server. @throws NoSuch */
  findServer (name: string): MarketServer {
    const server = this.#servers.find((each) => each.name === name)
    if (!server) throw noSuchError('server in this catalogue', name)
    return server
  }

  categories (): string[] { return sortedUnique(this.#servers.flatMap(({ categories }) => categories)) }
  tags (): string[] { return sortedUnique(this.#servers.flatMap(({ tags }) => tags)) }

  /** Returns the servers of a category, ignoring case; empty for an unknown category. */
  inCategory (name: string): readonly MarketServer[] {
    return this.#servers.filter(({ categories }) => includes(categories, name))
  }

  /** Returns the servers with a tag, ignoring case; empty for an unknown tag. */
  withTag (name: string): readonly MarketServer[] { return this.#servers.filter(({ tags }) => includes(tags, name)) }
}

const sortedUnique = (texts: readonly string[]): string[] =>
  [...new Set(texts)].sort((a, b) => a.localeCompare(b, 'en'))
const includes = (texts: readonly string[], wanted: string): boolean =>
  texts.some((text) => text.toLowerCase() === wanted.toLowerCase())

/** Adds to an entry the config for its first installation method, and the inputs that the user must fill in. */
function withConfig (entry: MarketEntry): MarketServer {
  const [first] = Object.values(entry.installations)
  if (!first) throw new Error(`assets/market/servers.json: ${entry.name} has no installation`)
  const config = configOf(first)
  const text = JSON.stringify(config)
  const required = Object.entries(entry.arguments)
    .filter(([key, each]) => each.required && text.includes(`\${${key}}`))
    .map((
      [key, { description, example, sensitive = false }]
    ): RequiredInput => ({ key, description, sensitive, placeholder: example }))
  return { ...entry, config, required }
}

const configOf = ({ command, args, env, url, headers }: Installation): ServerConfig => url === undefined
  ? { type: 'stdio', command, args, ...(env && { env }) }
  : { type: 'streamable-http', url, ...(headers && { headers }) }

/** Returns the name of the npm package that an entry runs with npx, without its version; undefined if there is none. */
export function npmPackageOf ({ installations: { npm } }: MarketEntry): string | undefined {
  const name = npm?.args?.find((arg) => !arg.startsWith('-'))
  // Removes the version: `@scope/name@1.2.3`.
  return name?.replace(/(?<=.)@[^/]*$/, '')
}

interface ServerCatalogues {
  readonly market: PackagedCatalogue, readonly cloud: CloudCatalogue, readonly registry: RegistryClient
}

declare module 'fastify' {
  interface FastifyInstance { catalogues: ServerCatalogues }
}

/** Decorates the app with `catalogues`: read-only lists of servers that can be added with `POST /api/servers`. */
export default fp(async (app) => {
  const sourceOf = (name: string): CatalogueSource => new CatalogueSource({
    outbound: app.outbound,
    name,
    reportOutage: (level, sentence) => { app.log[level](sentence) }
  })
  const [registry, cloud] = [sourceOf('The MCP registry'), sourceOf('The cloud catalogue')]
  let market: PackagedCatalogue | undefined
  app.decorate('catalogues', {
    get market () {
      market ??= new PackagedCatalogue(readAssetSync('market/servers.json'))
      return market
    },
    cloud: new CloudCatalogue(cloud, () => (app.settings.current.system as { mcpRouter?: object }).mcpRouter ?? {}),
    registry: new RegistryClient(registry, app.config.env.REGISTRY_URL)
  })
  app.addHook('onClose', async () => {
    registry.close()
    cloud.close()
  })
}, { name: 'catalogues', dependencies: ['config', 'settings', 'outbound'] })

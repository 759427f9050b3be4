import type { Field, Installation, MarketEntry, MarketFile, MarketServer } from '../../../schemas/catalogues.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { MarketFile as Schema } from '../../../schemas/catalogues.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { noSuch } from '../../base/errors/index.ts'

/** The catalogue that the project ships. It is read once. */
export class Market {
  readonly #servers: readonly MarketServer[]

  /** @param text the content of `assets/market/servers.json` @throws Error for a file that is not one */
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
    if (!server) throw noSuch('server in this catalogue', name)
    return server
  }

  categories (): string[] { return sorted(this.#servers.flatMap(({ categories }) => categories)) }
  tags (): string[] { return sorted(this.#servers.flatMap(({ tags }) => tags)) }

  /** The servers of a category, whatever the case of its letters; none for one that there is not. */
  inCategory (name: string): readonly MarketServer[] { return this.#servers.filter(({ categories }) => includes(categories, name)) }
  withTag (name: string): readonly MarketServer[] { return this.#servers.filter(({ tags }) => includes(tags, name)) }
}

const sorted = (texts: readonly string[]): string[] => [...new Set(texts)].sort((a, b) => a.localeCompare(b, 'en'))
const includes = (texts: readonly string[], wanted: string): boolean =>
  texts.some((text) => text.toLowerCase() === wanted.toLowerCase())

/** An entry with the config of its first installation, and the fields that this needs. */
function withConfig (entry: MarketEntry): MarketServer {
  const [first] = Object.values(entry.installations)
  if (!first) throw new Error(`assets/market/servers.json: ${entry.name} has no installation`)
  const config = configOf(first)
  const text = JSON.stringify(config)
  const required = Object.entries(entry.arguments)
    .filter(([key, each]) => each.required && text.includes(`\${${key}}`))
    .map(([key, { description, example, sensitive = false }]): Field => ({ key, description, sensitive, placeholder: example }))
  return { ...entry, config, required }
}

/** The config of one installation. */
const configOf = ({ command, args, env, url, headers }: Installation): ServerConfig => url === undefined
  ? { type: 'stdio', command, args, ...(env && { env }) }
  : { type: 'streamable-http', url, ...(headers && { headers }) }

import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { type ApiAnswer, ApiError } from '../../plugins/management/index.ts'
import type {
  CloudServer, RequiredInput, MarketServer, OptionalInput, ConvertedPackage, RegistryEntry, RegistryPage
} from '../../schemas/catalogues.ts'
import { type ServerToAdd, showServersToAdd, tabsOfAddServerPage, type VariableToFill } from './entries.ts'
import { filterByText, createPageRouter, type Visit } from './page.ts'
import { paginate, urlWithQuery } from './lists.ts'

/** A catalogue entry, as a row of the list. */
interface Row {
  readonly name: string
  readonly title: string
  readonly text: string
  readonly tags: readonly string[]
  /** Why the entry cannot be added. */
  readonly reason?: string
}

/** One page of a catalogue's list. */
interface CataloguePage {
  readonly rows: readonly Row[]
  readonly message?: string | undefined
  /** The cursor of the next page, in a catalogue that returns its list in pages. */
  readonly cursor?: string | undefined
}

/** A catalogue of servers. `lead`: the introduction on its page. */
interface Catalogue {
  readonly title: string
  readonly lead: string
  readonly list: (request: FastifyRequest, query: Visit['query']) => Promise<CataloguePage>
  /** Returns an entry. `packages`: the ways to run its server. */
  readonly entry: (
    request: FastifyRequest, name: string
  ) => Promise<{ title: string, text: string, packages: readonly ConvertedPackage[] }>
}

/** The pages with the list of each catalogue, and the pages that show an entry as servers to add. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { page } = createPageRouter(app)
  for (const [name, catalogue] of Object.entries(cataloguesOf(app))) {
    const path = `/add-a-server/${name}`

    page('catalogue', { title: catalogue.title, path }, async (visit) => {
      const { q = '', page: number = '1', cursor = '' } = visit.query
      const common = { lead: catalogue.lead, tabs: tabsOfAddServerPage(app, visit.principal, name), q }
      try {
        const { rows, message, cursor: next } = await catalogue.list(visit.request, visit.query)
        const { items, pages } = paginate(rows, `${kit.base}${path}`, { q, page: number })
        return {
          ...common,
          ...message !== undefined && { message },
          // The registry returns its list in pages, with cursors.
          pages: name === 'registry' ? undefined : pages,
          isFirst: cursor === '',
          first: urlWithQuery(`${kit.base}${path}`, { q }),
          ...next !== undefined && { next: urlWithQuery(`${kit.base}${path}`, { q, cursor: next }) },
          items: items.map((row) => ({ ...row, href: `${kit.base}${path}/${encodeURIComponent(row.name)}` }))
        }
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return { ...common, problem: `${error.message}.`, items: [] }
      }
    })

    app.get(`${path}/:entry`, { config: { effect: 'read' } }, async (request, reply) => {
      const { title, text, packages } = await catalogue.entry(request, (request.params as { entry: string }).entry)
      return showServersToAdd(app, reply, {
        entries: entriesOf(packages), source: { title, text, back: `${kit.base}${path}` }
      })
    })
  }
}
export default routes

/** Returns the catalogues by the last part of the URL of their pages. */
function cataloguesOf ({ kit: { api } }: FastifyInstance): Readonly<Record<string, Catalogue>> {
  const ask = async (request: FastifyRequest, path: string): Promise<ApiAnswer> => await api.ask(request, 'GET', path)
  return {
    market: {
      title: 'Market',
      lead: 'Servers known to this project, each with what it needs.',
      list: async (request, { q }) => {
        const { data } = await ask(request, urlWithQuery('/market/servers/search', { query: q }))
        return {
          rows: (data as readonly MarketServer[]).map(({ name, display_name: title, description: text, ...more }) =>
            ({ name, title, text, tags: [...more.is_official ? ['Official'] : [], ...more.categories] }))
        }
      },
      entry: async (request, entry) => {
        const { name, display_name: title, description, config, required } =
          (await ask(request, `/market/servers/${encodeURIComponent(entry)}`)).data as MarketServer
        return { title, text: description, packages: [{ from: 'entry', name, config, required }] }
      }
    },
    registry: {
      title: 'Registry',
      lead: 'The registry of the MCP project. Anyone can publish in it, and nobody reviews what they publish.',
      list: async (request, { q, cursor }) => {
        const query = { search: q, cursor, version: 'latest' }
        const { data, message } = await ask(request, urlWithQuery('/registry/servers', query))
        const { servers, metadata } = data as RegistryPage
        return { rows: servers.map(rowOf), message, cursor: metadata.nextCursor }
      },
      entry: async (request, entry) => {
        const { server, configs } =
          (await ask(request, `/registry/servers/${encodeURIComponent(entry)}/versions/latest`)).data as RegistryEntry
        return { title: server.title ?? server.name ?? '', text: server.description ?? '', packages: configs }
      }
    },
    cloud: {
      title: 'Cloud',
      lead: 'Servers hosted by the service set as mcpRouter in the settings.',
      list: async (request, { q }) => {
        const { data, message } = await ask(request, '/cloud/servers')
        const all = (data as readonly CloudServer[]).map(({ name, title, description: text, ...more }): Row =>
          ({ name, title, text, tags: [more.author_name], ...more.reason !== undefined && { reason: more.reason } }))
        return { rows: filterByText(all, q ?? '', ({ name, title, text }) => [name, title, text]), message }
      },
      entry: async (request, entry) => {
        const { name, title, description, config, required, reason } =
          (await ask(request, `/cloud/servers/${encodeURIComponent(entry)}`)).data as CloudServer
        const whole = { from: 'entry', name, required, ...config && { config }, ...reason !== undefined && { reason } }
        return { title, text: description, packages: [whole] }
      }
    }
  }
}

function rowOf ({ server: { name = '', title = name, description = '', version }, configs }: RegistryEntry): Row {
  const reasons = configs.flatMap(({ config, reason }) => config === undefined ? reason ?? 'It cannot be added' : [])
  return {
    name,
    title,
    text: description,
    tags: [...version === undefined ? [] : [version], ...new Set(configs.map(({ from }) => from))],
    ...configs.length === reasons.length && { reason: reasons[0] ?? 'It names nothing that can be run' }
  }
}

/** Returns a server to add for each way to run a catalogue entry. The first one with a config is selected. */
function entriesOf (packages: readonly ConvertedPackage[]): ServerToAdd[] {
  const first = packages.findIndex(({ config }) => config !== undefined)
  return packages.map(({ from, identifier, name = '', config, required = [], optional = [], reason }, index) => ({
    index,
    name,
    config: JSON.stringify(config ?? {}, undefined, 2),
    isChosen: index === first,
    remarks: [],
    variables: required.map(toVariable),
    ...packages.length > 1 && { from: [from, identifier].filter((each) => each !== undefined).join(' ') },
    options: optional.map(toText),
    ...config === undefined && { problem: `${reason ?? 'It cannot be added'}.` }
  }))
}

const toVariable = ({ key, title, description, sensitive, placeholder, choices }: RequiredInput): VariableToFill => {
  const hasExample = placeholder !== undefined && placeholder !== '…'
  const sentences = [description, hasExample ? `For example, ${placeholder}` : undefined]
    .filter((each) => each !== undefined && each !== '')
  return {
    key,
    ...title !== undefined && { title },
    ...sentences.length > 0 && { description: sentences.join('. ') },
    ...choices && { choices },
    ...sensitive === true && { isSecret: true }
  }
}

const toText = ({ title, place, description }: OptionalInput): string =>
  [`${title} (${place})`, ...description === undefined ? [] : [description]].join(': ')

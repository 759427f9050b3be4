import { createHash } from 'node:crypto'
import { isObject } from '../../../protocol/json.ts'
import type { CloudServer, CloudTool } from '../../../schemas/catalogues.ts'
import { configProblem } from '../../../schemas/server.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { toValidServerName, requireSafeConfigText, UnusableEntryError } from './inputs.ts'
import type { SourceAnswer, CatalogueSource } from './source.ts'
import { uniqueName } from '../unique-name.ts'
import { managementLimits } from '../limits.ts'
import { baseLimits } from '../../base/limits/index.ts'

/** The section `mcpRouter` of the system configuration, not validated. */
interface RouterSettings { apiKey?: unknown, baseUrl?: unknown, referer?: unknown, title?: unknown }

/** The number of servers that is requested per page. */
const pageSize = 100
/** Max length of the texts of one server or tool, in characters; beyond that, they are truncated. */
const longestText = 16 * 1024
/** The placeholder of the API key in configs. The key itself is not copied from the system configuration. */
const keyVariable = 'MCPROUTER_API_KEY'

/** The catalogue of the service whose address is in `mcpRouter` of the system configuration. */
export class CloudCatalogue {
  readonly #source: Pick<CatalogueSource, 'ask'>
  readonly #settings: () => RouterSettings

  /** @param settings returns the current section `mcpRouter` */
  constructor (source: Pick<CatalogueSource, 'ask'>, settings: () => RouterSettings) {
    this.#source = source
    this.#settings = settings
  }

  /**
   * Returns all servers, up to the limits of `managementLimits.catalogues`.
   * @param owner the caller, whose share of requests is used (`chargedOwnerOf`)
   * @throws InvalidInput if no address or key is configured, and the errors of `CatalogueSource.ask`
   */
  async listServers (owner: string): Promise<SourceAnswer<CloudServer[]>> {
    const seen = new Map<string, CloudServer>()
    let staleSince: string | undefined
    for (let page = 1; page <= managementLimits.catalogues.listPages &&
      seen.size < managementLimits.catalogues.answerEntries; page++) {
      const { value, staleSince: since } = await this.#post('list-servers', { page, limit: pageSize }, serversOf, owner)
      const before = seen.size
      staleSince ??= since
      for (const server of value) if (!seen.has(server.server_key)) seen.set(server.server_key, server)
      // A service without pagination returns the same servers again.
      if (value.length < pageSize || seen.size === before) break
    }
    const taken = new Set<string>()
    return {
      value: [...seen.values()].slice(0, managementLimits.catalogues.answerEntries)
        .map((server) => ({ ...server, name: uniqueName(taken, server.name) })),
      staleSince
    }
  }

  /**
   * Returns one server.
   * @param name the server's name in this list, its key at the service, or the name in its config
   * @throws NoSuch, and the errors of `listServers`
   */
  async findServer (name: string, owner: string): Promise<SourceAnswer<CloudServer>> {
    const { value, staleSince } = await this.listServers(owner)
    const server = value.find((each) => each.name === name) ??
      value.find((each) => each.server_key === name || each.config_name === name)
    if (!server) throw noSuchError('server in this catalogue', name)
    return { value: server, staleSince }
  }

  /** Returns the tools of a server. @throws the errors of `findServer` */
  async listTools (name: string, owner: string): Promise<SourceAnswer<CloudTool[]>> {
    const { value: { server_key: server } } = await this.findServer(name, owner)
    return await this.#post('list-tools', { server }, toolsOf, owner)
  }

  async #post<Value> (
    path: string, body: object, read: (answer: unknown) => Value, owner: string
  ): Promise<SourceAnswer<Value>> {
    const { apiKey, baseUrl, referer, title } = this.#settings()
    if (!isText(apiKey) || !isText(baseUrl)) {
      throw new errors.InvalidInput(
        'The cloud catalogue is not set up: an admin must set "mcpRouter.baseUrl" and "mcpRouter.apiKey"'
      )
    }
    const headers: Record<string, string> = {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      ...(isText(referer) && { 'http-referer': referer }),
      ...(isText(title) && { 'x-title': title })
    }
    if (Object.values(headers).some((value) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))) {
      throw new errors.InvalidInput(
        '"mcpRouter": "apiKey", "referer" and "title" contain a character that is not allowed in a header'
      )
    }
    const text = JSON.stringify(body)
    const url = `${baseUrl.replace(/\/+$/, '')}/${path}`
    // The cache key includes the headers, since another API key may give access to other servers.
    const key = createHash('sha256').update(JSON.stringify([url, headers, text])).digest('base64')
    return await this.#source.ask({ key, url, method: 'POST', headers, body: text, convert: read }, owner)
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const textOf = (value: unknown): string => typeof value === 'string' ? value.slice(0, longestText) : ''

/** Returns the list of servers or tools in the `data` of a response. @throws TypeError if there is none */
function listOf (answer: unknown, name: 'servers' | 'tools'): Array<Record<string, unknown>> {
  const data = isObject(answer) && isObject(answer.data) ? answer.data : {}
  const list = data[name]
  if (!Array.isArray(list)) throw new TypeError(`it has no list of ${name}`)
  return list.slice(0, managementLimits.catalogues.answerEntries).filter(isObject)
}

const serversOf = (answer: unknown): CloudServer[] => listOf(answer, 'servers').map((given) => {
  const [name, key, configName] = [textOf(given.name), textOf(given.server_key), textOf(given.config_name)]
  return {
    name: toValidServerName(configName, key, name),
    title: textOf(given.title) || name,
    description: textOf(given.description),
    author_name: textOf(given.author_name),
    content: textOf(given.content),
    server_key: key || name,
    config_name: configName,
    created_at: textOf(given.created_at),
    updated_at: textOf(given.updated_at),
    ...configFor(textOf(given.server_url))
  }
})

/** Returns the config for the address of a server, or the reason why there is none. */
function configFor (address: string): Pick<CloudServer, 'config' | 'required' | 'reason'> {
  if (address === '') return { required: [], reason: 'the service provides no address for it' }
  try {
    const url = requireSafeConfigText(address, 'server_url')
    const problem = configProblem({ type: 'streamable-http', url })
    if (problem !== undefined) throw new UnusableEntryError(problem)
    return {
      config: { type: 'streamable-http', url, headers: { Authorization: `Bearer \${${keyVariable}}` } },
      required: [{
        key: keyVariable,
        title: 'API key',
        description: 'Your API key of the cloud catalogue',
        sensitive: true
      }]
    }
  } catch (error) {
    if (error instanceof UnusableEntryError) return { required: [], reason: error.message }
    throw error
  }
}

const toolsOf = (answer: unknown): CloudTool[] =>
  listOf(answer, 'tools').filter((given) => isText(given.name)).map((given) => ({
    name: textOf(given.name),
    description: textOf(given.description),
    inputSchema: isObject(given.inputSchema) && JSON.stringify(given.inputSchema).length <= baseLimits.checkedSchema
      ? given.inputSchema
      : {}
  }))

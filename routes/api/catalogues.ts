import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { chargedOwnerOf } from '../../plugins/settings/index.ts'
import {
  CloudServer, CloudTool, MarketServer, RegistryEntry, RegistryPage, RegistryQuery
} from '../../schemas/catalogues.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'
import { requirePrincipal } from './principal.ts'
import { serializeRecords } from './records.ts'

const CloudServerParams = Type.Object({ name: Type.String() })
const EncodedServerName = Type.String({ description: 'Percent-encoded, including its slash' })
const Texts = Type.Array(Type.String())
const Servers = Type.Array(MarketServer)

/** Returns the owner (a user, key or address) whose share of requests to remote catalogues this request uses. */
const ownerOfRequest = (request: FastifyRequest): string => chargedOwnerOf(requirePrincipal(request), request.ip)

/**
 * Returns the result of a remote catalogue as `data` and, if the result is stale, a `message` with its time.
 * @param staleSince the time of a cached result, which is sent because the catalogue does not respond
 */
const answer = ({ value, staleSince }: { value: unknown, staleSince?: string }) => ({
  data: value,
  ...(staleSince !== undefined && { message: `The catalogue is not available now: this answer is from ${staleSince}` })
})

/**
 * Routes that return entries of the catalogues of servers: the market, the cloud and the MCP registry. They contain
 * configs (`config` or, in the registry, `configs`) in the format of `POST /servers`.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  // A page of the registry can contain several MB.
  app.addHook('preSerialization', serializeRecords)
  const { market, cloud, registry } = app.catalogues
  const { get } = createApiRouter(app, 'Catalogues')

  get('/market/servers', {
    summary: 'List the servers of the market',
    data: Servers
  }, () => ({ data: market.listServers() }))
  get('/market/servers/search', {
    summary: 'Search the market',
    query: Type.Object(
      { query: Type.Optional(Type.String({ maxLength: 200, description: 'Words that must all occur' })) }
    ),
    data: Servers
  }, ({ query }) => ({ data: market.search(query.query ?? '') }))
  get('/market/servers/:entry', {
    summary: 'Get a server of the market',
    params: Type.Object({ entry: Type.String() }),
    data: MarketServer
  }, ({ params }) => ({ data: market.findServer(params.entry) }))
  get('/market/categories', { summary: 'List the categories of the market', data: Texts }, () =>
    ({ data: market.categories() }))
  get('/market/categories/:category', {
    summary: 'List the servers of a market category',
    params: Type.Object({ category: Type.String() }),
    data: Servers
  }, ({ params }) => ({ data: market.inCategory(params.category) }))
  get('/market/tags', { summary: 'List the tags of the market', data: Texts }, () => ({ data: market.tags() }))
  get('/market/tags/:tag', {
    summary: 'List the servers of the market with a tag', params: Type.Object({ tag: Type.String() }), data: Servers
  }, (call) => ({ data: market.withTag(call.params.tag) }))

  get('/cloud/servers', {
    summary: 'List the servers of the cloud catalogue (`mcpRouter`)',
    description: '400 unless `mcpRouter.baseUrl` and `mcpRouter.apiKey` are set.',
    data: Type.Array(CloudServer)
  }, async ({ request }) => answer(await cloud.listServers(ownerOfRequest(request))))
  get('/cloud/servers/:name', {
    summary: 'Get a server of the cloud catalogue', params: CloudServerParams, data: CloudServer
  }, async ({ params, request }) => answer(await cloud.findServer(params.name, ownerOfRequest(request))))
  get('/cloud/servers/:name/tools', {
    summary: 'List the tools of a server of the cloud catalogue', params: CloudServerParams, data: Type.Array(CloudTool)
  }, async ({ params, request }) => answer(await cloud.listTools(params.name, ownerOfRequest(request))))

  get('/registry/servers', {
    summary: 'List or search the MCP registry',
    description: 'Returns pages of the v0.1 API of the registry at REGISTRY_URL, with `configs` added to each entry.',
    query: RegistryQuery,
    data: RegistryPage
  }, async ({ query, request }) => answer(await registry.listEntries(query, ownerOfRequest(request))))
  get('/registry/servers/:serverName/versions', {
    summary: 'List the versions of an entry',
    params: Type.Object({ serverName: EncodedServerName }),
    data: RegistryPage
  }, async ({ params, request }) => answer(await registry.listVersions(params.serverName, ownerOfRequest(request))))
  get('/registry/servers/:serverName/versions/:version', {
    summary: 'Get a version of an entry',
    params: Type.Object(
      { serverName: EncodedServerName, version: Type.String({ description: '`latest`, or an exact version' }) }
    ),
    data: RegistryEntry
  }, async ({ params, request }) =>
    answer(await registry.findVersion(params.serverName, params.version, ownerOfRequest(request))))
}
export default routes

import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { ownerOf } from '../../plugins/settings/index.ts'
import { Success } from '../../schemas/api.ts'
import { CloudServer, CloudTool, MarketServer, RegistryEntry, RegistryPage, RegistryQuery } from '../../schemas/catalogues.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { principalOf } from './principal.ts'
import { serializeRecords } from './records.ts'

const config = { effect: 'read' } as const
const tags = ['Catalogues']
const Name = Type.Object({ name: Type.String() })
const Texts = Success(Type.Array(Type.String()))

/** In whose name a service is asked. */
const ownerOfRequest = (request: FastifyRequest): string => ownerOf(principalOf(request), request.ip)

/** An answer of a service, which says so when it is an earlier one. */
const answer = <Value>({ value, staleSince }: { value: Value, staleSince?: string }) => ({
  success: true as const,
  data: value,
  ...(staleSince !== undefined && { message: `The catalogue gives no answer now: this is from ${staleSince}` })
})

/** Servers that may be added: `POST /servers` takes their `name` and `config` unchanged. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  // A page of a registry may have megabytes.
  app.addHook('preSerialization', serializeRecords)
  const { market, cloud, registry } = app.catalogues
  const Servers = Success(Type.Array(MarketServer))

  app.get(
    '/market/servers',
    { schema: { tags, summary: 'List the servers that the project knows', response: { 200: Servers } }, config },
    async () => ({ success: true as const, data: [...market.list()] })
  )
  app.get(
    '/market/servers/search',
    {
      schema: {
        tags,
        summary: 'Search them',
        querystring: Type.Object({ query: Type.Optional(Type.String({ maxLength: 200, description: 'Words, all of which must occur' })) }),
        response: { 200: Servers }
      },
      config
    },
    async (request) => ({ success: true as const, data: [...market.search(request.query.query ?? '')] })
  )
  app.get(
    '/market/servers/:entry',
    {
      schema: {
        tags,
        summary: 'Read one of them',
        params: Type.Object({ entry: Type.String() }),
        response: { 200: Success(MarketServer) }
      },
      config
    },
    async (request) => ({ success: true as const, data: market.server(request.params.entry) })
  )
  app.get(
    '/market/categories',
    { schema: { tags, summary: 'List their categories', response: { 200: Texts } }, config },
    async () => ({ success: true as const, data: market.categories() })
  )
  app.get(
    '/market/categories/:category',
    {
      schema: {
        tags,
        summary: 'List the servers of a category',
        params: Type.Object({ category: Type.String() }),
        response: { 200: Servers }
      },
      config
    },
    async (request) => ({ success: true as const, data: [...market.inCategory(request.params.category)] })
  )
  app.get(
    '/market/tags',
    { schema: { tags, summary: 'List their tags', response: { 200: Texts } }, config },
    async () => ({ success: true as const, data: market.tags() })
  )
  app.get(
    '/market/tags/:tag',
    {
      schema: { tags, summary: 'List the servers with a tag', params: Type.Object({ tag: Type.String() }), response: { 200: Servers } },
      config
    },
    async (request) => ({ success: true as const, data: [...market.withTag(request.params.tag)] })
  )

  app.get(
    '/cloud/servers',
    {
      schema: {
        tags,
        summary: 'List the servers of the service that mcpRouter names',
        description: '400 while `mcpRouter.baseUrl` or `mcpRouter.apiKey` is not set.',
        response: { 200: Success(Type.Array(CloudServer)) }
      },
      config
    },
    async (request) => answer(await cloud.servers(ownerOfRequest(request)))
  )
  app.get(
    '/cloud/servers/:name',
    { schema: { tags, summary: 'Read one of them', params: Name, response: { 200: Success(CloudServer) } }, config },
    async (request) => answer(await cloud.server(request.params.name, ownerOfRequest(request)))
  )
  app.get(
    '/cloud/servers/:name/tools',
    { schema: { tags, summary: 'List its tools', params: Name, response: { 200: Success(Type.Array(CloudTool)) } }, config },
    async (request) => answer(await cloud.tools(request.params.name, ownerOfRequest(request)))
  )

  app.get(
    '/registry/servers',
    {
      schema: {
        tags,
        summary: 'List or search the MCP registry',
        description: 'The API v0.1 of the registry at REGISTRY_URL. Each entry also has its `configs`.',
        querystring: RegistryQuery,
        response: { 200: Success(RegistryPage) }
      },
      config
    },
    async (request) => answer(await registry.list(request.query, ownerOfRequest(request)))
  )
  app.get(
    '/registry/servers/:serverName/versions',
    {
      schema: {
        tags,
        summary: 'List the versions of an entry',
        params: Type.Object({ serverName: Type.String({ description: 'Percent-encoded, with its slash' }) }),
        response: { 200: Success(RegistryPage) }
      },
      config
    },
    async (request) => answer(await registry.versions(request.params.serverName, ownerOfRequest(request)))
  )
  app.get(
    '/registry/servers/:serverName/versions/:version',
    {
      schema: {
        tags,
        summary: 'Read a version of an entry',
        params: Type.Object({
          serverName: Type.String({ description: 'Percent-encoded, with its slash' }),
          version: Type.String({ description: '`latest`, or an exact version' })
        }),
        response: { 200: Success(RegistryEntry) }
      },
      config
    },
    async (request) => answer(await registry.version(request.params.serverName, request.params.version, ownerOfRequest(request)))
  )
}
export default routes

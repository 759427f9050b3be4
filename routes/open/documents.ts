import type { Readable } from 'node:stream'
import type { Static } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { refuseUnknownQuery } from '../../plugins/base/body/index.ts'
import { chargedOwnerOf, type Principal } from '../../plugins/settings/index.ts'
import { pacedReply, memoryBudget, type Release, baseLimits } from '../../plugins/base/limits/index.ts'
import {
  DocumentQuery, GroupOrServerDocumentQuery, GroupOrServerParams, OpenApiDocument, OpenApiServerNames, OpenRouteError,
  ToolStats
} from '../../schemas/openapi-routes.ts'
import { allowAnyOrigin } from '../any-origin.ts'
import { matchesEntityTag, createEntityTagHook } from '../entity-tag.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

const tags = ['OpenAPI']
const security: Array<Record<string, string[]>> = []
const config = { effect: 'read' } as const
const failures = { 400: OpenRouteError, 403: OpenRouteError, 404: OpenRouteError, 503: OpenRouteError }
const cacheControl = 'private, no-cache'
const types = { json: 'application/json', yaml: 'application/yaml' } as const
const answers = {
  json: OpenApiDocument,
  yaml: { description: 'An OpenAPI 3.0.3 document', content: { 'application/yaml': { schema: OpenApiDocument } } }
} as const

/**
 * The routes that describe the tools that can be called over plain HTTP: OpenAPI documents, the connected servers, and
 * the number of tools. Responses have an ETag; a request whose If-None-Match matches it gets 304.
 */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  allowAnyOrigin(app, Object.fromEntries(['json', 'yaml'].flatMap((format) =>
    ['/openapi', '/:name/openapi'].map((path) => [`${path}.${format}`, 'GET']))))
  app.addHook('onRoute', refuseUnknownQuery)
  app.addHook('onSend', createEntityTagHook(cacheControl))

  const callerOf = async (request: FastifyRequest): Promise<Principal> =>
    ({ ...await app.auth.identifyOptionally(request), address: request.ip })
  const send = async (
    request: FastifyRequest,
    reply: FastifyReply,
    name: string | undefined,
    query: Static<typeof DocumentQuery>,
    format: 'json' | 'yaml'
  ): Promise<FastifyReply> => {
    const principal = await callerOf(request)
    const owner = chargedOwnerOf(principal, request.ip)
    const releases: Release[] = []
    const hold = (bytes: number): void => {
      if (bytes > baseLimits.smallText) releases.push(memoryBudget.reserve(owner, bytes))
    }
    let body: string | Buffer | Readable = ''
    try {
      const { bytes, etag } = await app.openapi.document(principal, name, query, format, request.ip, hold)
      reply.type(types[format]).header('etag', etag)
      if (!matchesEntityTag(request, etag)) {
        if (bytes.length <= baseLimits.smallText) body = bytes
        else {
          reply.headers({ 'content-length': bytes.length, 'cache-control': cacheControl })
          body = pacedReply(reply.raw, [bytes], bytes.length, { owner, cost: 1 })
        }
      }
    } finally {
      // `pacedReply` has reserved the memory of the document by now.
      for (const release of releases) release()
    }
    return await reply.send(body)
  }
  for (const format of ['json', 'yaml'] as const) {
    const form = `as OpenAPI 3.0.3 in ${format.toUpperCase()}`
    app.get(
      `/openapi.${format}`,
      {
        schema: {
          tags,
          security,
          summary: `The tools that you may call, ${form}`,
          querystring: DocumentQuery,
          response: { 200: answers[format], ...failures }
        },
        config
      },
      async (request, reply) => await send(request, reply, undefined, request.query, format)
    )

    const part = {
      tags,
      security,
      summary: `The tools of one group or server, ${form}`,
      querystring: GroupOrServerDocumentQuery,
      response: { 200: answers[format], ...failures }
    }
    app.get(
      `/:name/openapi.${format}`,
      { schema: { ...part, params: GroupOrServerParams }, config },
      async (request, reply) => await send(request, reply, request.params.name, request.query, format)
    )
  }

  app.get('/openapi/servers', {
    schema: {
      tags,
      security,
      summary: 'The connected servers that you may use',
      response: { 200: OpenApiServerNames, ...failures }
    },
    config
  }, async (request) =>
    ({ success: true as const, data: app.openapi.servers(await callerOf(request)) }))

  app.get('/openapi/stats', {
    schema: {
      tags, security, summary: 'The number of tools that you may call', response: { 200: ToolStats, ...failures }
    },
    config
  }, async (request) =>
    ({ success: true as const, data: app.openapi.stats(await callerOf(request)) }))
}
export default routes

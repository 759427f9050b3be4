import { createHash } from 'node:crypto'
import { DocumentQuery, OpenApiDocument, OpenFailure, PartName, PartQuery, ServerNames, ToolStats } from '../../schemas/openapi-routes.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'

const tags = ['OpenAPI']
const security: Array<Record<string, string[]>> = []
const config = { effect: 'read' } as const
const failures = { 400: OpenFailure, 404: OpenFailure }
const types = { json: 'application/json', yaml: 'application/yaml' } as const

/** What may be called over plain HTTP, described. Answers carry an ETag, and are sent once to who sends it back. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.addHook('onSend', async (request, reply, payload) => {
    if (reply.statusCode !== 200 || typeof payload !== 'string') return payload
    const etag = String(reply.getHeader('etag') ?? `"${createHash('sha256').update(payload).digest('base64url')}"`)
    reply.headers({ etag, 'cache-control': 'private, no-cache' })
    if (!matches(request.headers['if-none-match'], etag)) return payload
    reply.code(304)
    return ''
  })

  for (const format of ['json', 'yaml'] as const) {
    app.get(`/openapi.${format}`, {
      schema: { tags, security, summary: `The tools that you reach, as OpenAPI 3.0.3 in ${format.toUpperCase()}`, querystring: DocumentQuery, response: { 200: OpenApiDocument, ...failures } },
      config
    }, async (request, reply) => {
      const { text, etag } = app.openapi.document(app.auth.optional(request), undefined, request.query, format)
      reply.type(types[format]).header('etag', etag)
      return text
    })

    app.get(`/:name/openapi.${format}`, {
      schema: { tags, security, summary: `The tools of one group or server, as OpenAPI 3.0.3 in ${format.toUpperCase()}`, params: PartName, querystring: PartQuery, response: { 200: OpenApiDocument, ...failures } },
      config
    }, async (request, reply) => {
      const { text, etag } = app.openapi.document(app.auth.optional(request), request.params.name, request.query, format)
      reply.type(types[format]).header('etag', etag)
      return text
    })
  }

  app.get('/openapi/servers', {
    schema: { tags, security, summary: 'The connected servers that you reach', response: { 200: ServerNames, ...failures } },
    config
  }, async (request) => ({ success: true as const, data: app.openapi.servers(app.auth.optional(request)) }))

  app.get('/openapi/stats', {
    schema: { tags, security, summary: 'How many tools you reach', response: { 200: ToolStats, ...failures } },
    config
  }, async (request) => ({ success: true as const, data: app.openapi.stats(app.auth.optional(request)) }))
}
export default routes

/** Whether a list of entity tags names this one (RFC 9110 §13.1.2: weak comparison). */
const matches = (header: string | undefined, etag: string): boolean =>
  header !== undefined && (header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === etag))

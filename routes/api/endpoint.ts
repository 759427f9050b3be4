import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest, preSerializationAsyncHookHandler } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import type { RouteEffect } from '../../plugins/base/scopes/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { SuccessWithoutData, PageOf, PageQuery, Success, SuccessWithWarnings } from '../../schemas/answers.ts'
import { satisfiesIfMatch } from '../entity-tag.ts'
import { requirePrincipal } from './principal.ts'

/** The argument of a handler of the management API: the caller, and the validated parts of the request. */
export interface ApiHandlerContext<
  Params extends TSchema = TSchema, Query extends TSchema = TSchema, Body extends TSchema = TSchema
> {
  readonly principal: Principal
  readonly params: Static<Params>
  readonly query: Static<Query>
  readonly body: Static<Body>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/**
 * The result of a handler. Warnings are also appended to the message, if there is one, since some clients show only the
 * message.
 */
interface Answer {
  readonly data?: unknown
  /** A sentence without its full stop. */
  readonly message?: string
  readonly warnings?: readonly string[]
  /** The key of the created item, for the Location header. It has an effect only if the route has a `collection`. */
  readonly created?: string
  /** For a request about several items: `partial` if some failed (status 207), `failed` if all failed (status 400). */
  readonly outcome?: 'partial' | 'failed'
  // Further members of the response, which only a few routes use.
  readonly nextCursor?: string
  readonly pagination?: object
  readonly token?: string
  readonly user?: object
}

/** The description of a route: its schemas, for validation and documentation, and its options. */
interface ApiRouteOptions<Params extends TSchema, Query extends TSchema, Body extends TSchema> {
  readonly summary: string
  readonly description?: string
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** The schema of `data` in the response; undefined if the response has no `data`. */
  readonly data?: TSchema
  /** The schemas of whole responses by status. If present, `data` is ignored. */
  readonly response?: Readonly<Record<number, unknown>>
  /** For a route that creates an item: the path of its collection below `/api`. The response has status 201. */
  readonly collection?: string
  /** What a request does. Default: `read` for GET, otherwise `change`. */
  readonly effect?: RouteEffect
  /** Runs before the body is read, so that 404 and 403 take precedence over 400 for an invalid body. */
  readonly before?: (call: Pick<ApiHandlerContext<Params, Query, Body>, 'principal' | 'params' | 'request'>) => unknown
  readonly preSerialization?: preSerializationAsyncHookHandler
  /**
   * Returns a digest of the record's stored content as the caller sees it. The ETag of a GET response begins with it; a
   * change whose If-Match contains another digest is rejected with 412.
   */
  readonly revision?: (call: Pick<ApiHandlerContext<Params, Query, Body>, 'principal' | 'params'>) => string
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type AddRoute = <Params extends TSchema, Query extends TSchema, Body extends TSchema>(
  path: string,
  endpoint: ApiRouteOptions<Params, Query, Body>,
  answer: (call: ApiHandlerContext<Params, Query, Body>) => Answer | Promise<Answer>
) => void

/** The functions that add routes. The responses have the form `{success, data?, message?, warnings?}`. */
interface ApiRouter {
  readonly get: AddRoute
  readonly post: AddRoute
  readonly put: AddRoute
  readonly delete: AddRoute
  /** Adds a GET route that returns a list in pages. @param key the member that identifies an item in the list */
  readonly list: <Item extends object> (
    path: string,
    endpoint: { summary: string, item: TObject, key: keyof Item & string },
    items: (call: ApiHandlerContext) => readonly Item[] | Promise<readonly Item[]>
  ) => void
}

/** The header of a change that is made only if the record is as the caller last read it (RFC 9110, section 13.1.1). */
const IfMatch = Type.Object({
  'if-match': Type.Optional(Type.String({ description: 'The ETag of the version that is to be changed' }))
})

/**
 * Returns the functions that add routes of the management API to `app`.
 * @param tag the OpenAPI tag of these routes
 */
export function createApiRouter (app: FastifyInstance, tag: string): ApiRouter {
  const add = (method: Method): AddRoute =>
    (path, { query: querystring, before, effect, preSerialization, revision, ...endpoint }, answer) => {
      const { summary, description, params, body, collection } = endpoint
      app.route({
        method,
        url: path,
        schema: {
          tags: [tag],
          summary,
          ...(description === undefined ? {} : { description }),
          ...(params && { params }),
          ...(querystring && { querystring }),
          ...(revision && method !== 'GET' && { headers: IfMatch }),
          ...(body && { body }),
          response: endpoint.response ?? { [collection === undefined ? 200 : 201]: responseOf(method, endpoint.data) }
        },
        config: {
          effect: effect ?? (method === 'GET' ? 'read' : 'change'),
          ...(revision && method === 'GET' && { hasRevision: true })
        },
        ...(before && {
          onRequest: async (request: FastifyRequest) => {
            await before({ principal: requirePrincipal(request), params: request.params, request })
          }
        }),
        ...(preSerialization && { preSerialization }),
        handler: async (request, reply) => {
          const { params, query, body } = request
          const principal = revision ? withPrecondition(request, revision) : requirePrincipal(request)
          const result = await answer({ principal, params, query, body, request, reply })
          if (revision && method === 'GET') reply.header('etag', `"${revision({ principal, params })}"`)
          if (result.created !== undefined && collection !== undefined) {
            setCreatedStatus(reply, collection, result.created)
          }
          if (result.outcome !== undefined) reply.code(result.outcome === 'partial' ? 207 : 400)
          return toEnvelope(result)
        }
      })
    }
  const get = add('GET')
  return {
    get,
    post: add('POST'),
    put: add('PUT'),
    delete: add('DELETE'),
    list: (path, { summary, item, key }, items) => {
      get(path, { summary, query: PageQuery, response: { 200: PageOf(Type.Partial(item)) } }, async (call) =>
        pageOf(await items(call), call.query, item, (each) => String(each[key])))
    }
  }
}

/** Returns the caller, with a check of the request's If-Match that runs immediately before the settings change. */
function withPrecondition (
  request: FastifyRequest, revision: (call: { principal: Principal, params: unknown }) => string
): Principal {
  const principal = requirePrincipal(request)
  if (request.headers['if-match'] === undefined) return principal
  return {
    ...principal,
    checkPrecondition: () => {
      if (!satisfiesIfMatch(request, revision({ principal, params: request.params }))) {
        throw new errors.ChangedMeanwhile()
      }
    }
  }
}

function responseOf (method: Method, data: TSchema | undefined): TSchema {
  if (!data) return SuccessWithoutData
  return method === 'GET' ? Success(data) : SuccessWithWarnings(data)
}

function toEnvelope ({ created: _, outcome, message, warnings = [], ...answer }: Answer): object {
  const text = message === undefined
    ? undefined
    : [message, ...warnings.map((each) => each.replace(/\.$/, ''))].join('. ')
  return {
    success: outcome !== 'failed',
    ...answer,
    message: text,
    ...(warnings.length > 0 && { warnings }),
    ...(outcome === 'failed' && { code: 'TH_INVALID_INPUT' })
  }
}

/**
 * Sets status 201 and the Location header of a new item (RFC 9110, section 15.3.2).
 * @param collection the path of the collection below `/api`
 * @param key the last part of the item's path
 */
export function setCreatedStatus (reply: FastifyReply, collection: string, key: string): void {
  reply.code(201).header('location', `${reply.server.config.basePath}/api${collection}/${encodeURIComponent(key)}`)
}

/**
 * Returns one page of a list, with the members selected by `fields`. The cursor is the key of the last item of the
 * preceding page, in base64url, so that items added or removed meanwhile do not shift the pages.
 * @param record the schema of an item, with all its members
 * @param keyOf returns the key of an item, which is unique in the list
 * @throws InvalidInput if no item of the list has the key in the cursor, or for an unknown field
 */
function pageOf<Item extends object> (
  items: readonly Item[],
  { limit = items.length, cursor, fields }: Static<typeof PageQuery>,
  record: TObject,
  keyOf: (item: Item) => string
): { data: Array<Partial<Item>>, nextCursor?: string } {
  const pick = fields === undefined ? undefined : createPicker(fields, Object.keys(record.properties))
  const from = cursor === undefined ? 0 : positionAfter(items.map(keyOf), cursor)
  const data = items.slice(from, from + limit)
  const last = data.at(-1)
  const hasMore = last !== undefined && from + limit < items.length
  return {
    data: pick ? data.map(pick) : data,
    ...(hasMore ? { nextCursor: Buffer.from(keyOf(last)).toString('base64url') } : {})
  }
}

function positionAfter (names: readonly string[], cursor: string): number {
  const name = Buffer.from(cursor, 'base64url').toString()
  const at = names.indexOf(name)
  if (at < 0) {
    throw new errors.InvalidInput(
      '"cursor" is not (or no longer) valid for this list: start again without it'
    )
  }
  return at + 1
}

/**
 * Creates a function that copies the named members of an item; undefined if `fields` names none.
 * @param fields the names of members, separated by commas; empty names are ignored
 * @param known the names of all members
 * @throws InvalidInput for an unknown name
 */
function createPicker (
  fields: string, known: readonly string[]
): (<Item extends object>(item: Item) => Partial<Item>) | undefined {
  const wanted = new Set(fields.split(',').map((field) => field.trim()).filter((field) => field !== ''))
  const unknown = [...wanted].find((field) => !known.includes(field))
  if (unknown !== undefined) {
    throw new errors.InvalidInput(
      `"fields": ${JSON.stringify(unknown.slice(0, 100))} is not known; there are ${known.join(', ')}`
    )
  }
  if (wanted.size === 0) return undefined
  return <Item extends object>(item: Item) =>
    Object.fromEntries(Object.entries(item).filter(([key]) => wanted.has(key))) as Partial<Item>
}

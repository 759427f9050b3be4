import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { endpointsOf } from './endpoint.ts'

/** A record after a change, with warnings about probable mistakes in it. */
interface Written { readonly data: object, readonly warnings?: readonly string[] }

/** An entity of the settings, as the management API lists, reads and changes it. */
export interface Entity<Item extends object, New extends TSchema, Change extends TSchema> {
  readonly tag: string
  /** The path of the collection below `/api`. */
  readonly path: string
  /** The schema of the path parameter that identifies an item. */
  readonly params: TObject
  /** The noun for summaries and messages. */
  readonly noun: string
  /** Which items a caller sees, as the end of a sentence. */
  readonly listed: string
  readonly item: TObject
  readonly newItem: New
  readonly change: Change
  /** The member of an item that is its path parameter. */
  readonly key: keyof Item & string
  /** The member that cursors are based on; by default `key`. */
  readonly pageKey?: keyof Item & string
  readonly about?: {
    readonly get?: string, readonly create?: string, readonly update?: string, readonly remove?: string
  }
  /** The message after creation; by default "The <noun> was added". */
  readonly addedMessage?: string
  readonly list: (principal: Principal) => readonly Item[]
  /** @throws NoSuch, Forbidden */
  readonly get: (principal: Principal, key: string) => Item
  /** Checks that the caller may change an item; by default `get` does. @throws NoSuch, Forbidden */
  readonly mustManage?: (principal: Principal, key: string) => unknown
  readonly create: (principal: Principal, input: Static<New>) => Promise<Written>
  readonly update: (principal: Principal, key: string, change: Static<Change>) => Promise<Written>
  readonly remove: (principal: Principal, key: string) => Promise<void>
}

/** The value of the only parameter of a path. */
const keyIn = (params: unknown): string => Object.values(params as Record<string, string>)[0] ?? ''

const pathOf = ({ path, params }: { path: string, params: TObject }): string =>
  `${path}/:${Object.keys(params.properties)[0] ?? ''}`

/** Adds the routes that list the items of an entity, and read one. */
export function addReadRoutes<Item extends object, New extends TSchema, Change extends TSchema> (
  app: FastifyInstance,
  entity: Entity<Item, New, Change>
): void {
  const { tag, path, params, noun, listed, item, key, pageKey = key, about = {} } = entity
  const api = endpointsOf(app, tag)
  api.list(path, { summary: `List the ${listed}`, item, key: pageKey }, ({ principal }) => entity.list(principal))
  api.get(pathOf(entity), { summary: `One ${noun}${about.get ?? ''}`, params, data: item }, (call) =>
    ({ data: entity.get(call.principal, keyIn(call.params)) }))
}

/** Adds the routes that create, change and remove an item of an entity. */
export function addWriteRoutes<Item extends object, New extends TSchema, Change extends TSchema> (
  app: FastifyInstance,
  entity: Entity<Item, New, Change>
): void {
  const { tag, path, params, noun, item, key, about = {}, mustManage = entity.get } = entity
  const api = endpointsOf(app, tag)
  const before = ({ principal, params }: { principal: Principal, params: unknown }): unknown =>
    mustManage(principal, keyIn(params))
  const added = {
    summary: `Add a ${noun}`, description: about.create, body: entity.newItem, data: item, collection: path
  }
  api.post(path, added, async ({ principal, body }) => {
    const { data, warnings } = await entity.create(principal, body)
    const message = entity.addedMessage ?? `The ${noun} was added`
    return { data, message, warnings, created: String((data as Item)[key]) }
  })
  const changed = {
    summary: `Change a ${noun}`, description: about.update, params, body: entity.change, data: item, before
  }
  api.put(pathOf(entity), changed, async (call) => {
    const { data, warnings } = await entity.update(call.principal, keyIn(call.params), call.body)
    return { data, message: `The ${noun} was changed`, warnings }
  })
  api.delete(pathOf(entity), {
    summary: `Remove a ${noun}`, description: about.remove, params, before
  }, async (call) => {
    await entity.remove(call.principal, keyIn(call.params))
    return { message: `The ${noun} was removed` }
  })
}

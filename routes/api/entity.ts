import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import { createApiRouter } from './endpoint.ts'

/** A created or changed record, with warnings about probable mistakes in it. */
interface WriteResult { readonly data: object, readonly warnings?: readonly string[] }

/**
 * The operations on the items of an entity (one kind of setting, such as groups), within the caller's rights. The
 * decorators for groups, keys and teams implement this interface directly.
 */
interface EntityOperations<Item, New, Change> {
  list: (principal: Principal) => readonly Item[]
  /** @throws NoSuch, Forbidden */
  get: (principal: Principal, key: string) => Item
  /**
   * Called before an item is changed or removed, to reject callers who may not do that. Default: `get`.
   * @throws NoSuch, Forbidden
   */
  assertCanManage?: (principal: Principal, key: string) => unknown
  create: (principal: Principal, input: New) => Promise<WriteResult>
  update: (principal: Principal, key: string, change: Change) => Promise<WriteResult>
  remove: (principal: Principal, key: string) => Promise<void>
}

/** The description of the routes that list, read, create, change and remove items of one kind, such as groups. */
export interface CrudEntity<Item extends object, New extends TSchema, Change extends TSchema> {
  readonly tag: string
  /** The path of the collection below `/api`. */
  readonly path: string
  /** The schema of the path parameter that identifies an item. */
  readonly params: TObject
  /** The noun for one item, for summaries and messages. */
  readonly noun: string
  /** A noun phrase for the listed items; it completes the summary "List the …". */
  readonly listedItems: string
  readonly itemSchema: TObject
  readonly newItemSchema: New
  readonly changeSchema: Change
  /** The member of an item whose value is the last part of the item's path. */
  readonly key: keyof Item & string
  /** The member of an item whose value is the cursor of a page of the list. Default: `key`. */
  readonly pageKey?: keyof Item & string
  /** Descriptions of the routes. `get` is appended to the summary "Get a <noun>". */
  readonly descriptions?: {
    readonly get?: string, readonly create?: string, readonly update?: string, readonly remove?: string
  }
  /** The `message` of the response to a POST. Default: "The <noun> was added". */
  readonly addedMessage?: string
  readonly items: EntityOperations<Item, Static<New>, Static<Change>>
}

/** Creates `EntityOperations` from operations whose results do not depend on the caller's rights. */
export function toEntityOperations<Item extends object, New, Change> (entries: {
  list: () => readonly Item[]
  get: (key: string) => Item
  create: (principal: Principal, input: New) => Promise<Item>
  update: (principal: Principal, key: string, change: Change) => Promise<Item>
  remove: (principal: Principal, key: string) => Promise<void>
  warningsAbout?: (item: Item) => Promise<readonly string[]>
}): EntityOperations<Item, New, Change> {
  const toResult = async (data: Item): Promise<WriteResult> =>
    ({ data, warnings: await entries.warningsAbout?.(data) })
  return {
    list: () => entries.list(),
    get: (_principal, key) => entries.get(key),
    create: async (principal, input) => await toResult(await entries.create(principal, input)),
    update: async (principal, key, change) => await toResult(await entries.update(principal, key, change)),
    remove: async (principal, key) => { await entries.remove(principal, key) }
  }
}

/** Returns the value of the only path parameter: the key of an item. */
const keyIn = (params: unknown): string => Object.values(params as Record<string, string>)[0] ?? ''

const pathOf = ({ path, params }: { path: string, params: TObject }): string =>
  `${path}/:${Object.keys(params.properties)[0] ?? ''}`

/**
 * Creates a function that computes the revision of the item in the path, without `lastUsedAt`, which each use changes.
 */
const revisionIn = <Item extends object>(
  entity: { readonly items: Pick<EntityOperations<Item, never, never>, 'get'> }
) =>
    ({ principal, params }: { principal: Principal, params: unknown }): string => {
      const { lastUsedAt: _, ...stored } = entity.items.get(principal, keyIn(params)) as Item & { lastUsedAt?: unknown }
      return revisionOfRecord(stored)
    }

/** Adds the routes that list the items of an entity, and return a single one. */
export function addReadRoutes<Item extends object, New extends TSchema, Change extends TSchema> (
  app: FastifyInstance,
  entity: CrudEntity<Item, New, Change>
): void {
  const {
    tag, path, params, noun, listedItems: listed, itemSchema: item, key, pageKey = key, descriptions: about = {}
  } = entity
  const api = createApiRouter(app, tag)
  api.list(path, { summary: `List the ${listed}`, item, key: pageKey }, ({ principal }) => entity.items.list(principal))
  const revision = revisionIn(entity)
  api.get(pathOf(entity), { summary: `Get a ${noun}${about.get ?? ''}`, params, data: item, revision }, (call) =>
    ({ data: entity.items.get(call.principal, keyIn(call.params)) }))
}

/** Adds the routes that create, change and remove an item of an entity. */
export function addWriteRoutes<Item extends object, New extends TSchema, Change extends TSchema> (
  app: FastifyInstance,
  entity: CrudEntity<Item, New, Change>
): void {
  const { tag, path, params, noun, itemSchema: item, key, descriptions: about = {}, items } = entity
  const api = createApiRouter(app, tag)
  const before = ({ principal, params }: { principal: Principal, params: unknown }): unknown =>
    (items.assertCanManage ?? items.get).call(items, principal, keyIn(params))
  const added = {
    summary: `Add a ${noun}`, description: about.create, body: entity.newItemSchema, data: item, collection: path
  }
  api.post(path, added, async ({ principal, body }) => {
    const { data, warnings } = await items.create(principal, body)
    const message = entity.addedMessage ?? `The ${noun} was added`
    return { data, message, warnings, created: String((data as Item)[key]) }
  })
  const changed = {
    summary: `Change a ${noun}`,
    description: about.update,
    params,
    body: entity.changeSchema,
    data: item,
    before,
    revision: revisionIn(entity)
  }
  api.put(pathOf(entity), changed, async (call) => {
    const { data, warnings } = await items.update(call.principal, keyIn(call.params), call.body)
    return { data, message: `The ${noun} was changed`, warnings }
  })
  api.delete(pathOf(entity), {
    summary: `Remove a ${noun}`, description: about.remove, params, before
  }, async (call) => {
    await items.remove(call.principal, keyIn(call.params))
    return { message: `The ${noun} was removed` }
  })
}

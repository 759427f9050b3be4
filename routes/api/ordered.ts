import { type Static, type TObject, Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { ReadOnlyMember } from '../../schemas/answers.ts'
import { ClosedObject } from '../../schemas/closed.ts'
import { createApiRouter } from './endpoint.ts'
import { addReadRoutes, addWriteRoutes, toEntityOperations } from './entity.ts'

/** The operations on the entries of an ordered entity, as implemented by `OrderedEntries`. */
interface Entries<Item extends object, New> {
  readonly list: () => Item[]
  readonly get: (id: string) => Item
  readonly create: (principal: Principal, input: New) => Promise<Item>
  readonly update: (principal: Principal, id: string, input: New) => Promise<Item>
  readonly remove: (principal: Principal, id: string) => Promise<void>
  readonly warningsAbout: (item: Item) => Promise<readonly string[]>
  readonly reorder: (principal: Principal, ids: readonly string[]) => Promise<Item[]>
}

/** The description of the routes for one kind of setting whose entries have an order, such as policies. */
interface OrderedEntity<Item extends object, New extends TObject> {
  readonly tag: string
  /** The path of the collection below `/api`. */
  readonly path: string
  readonly noun: string
  /** The noun in the plural. */
  readonly nouns: string
  readonly itemSchema: TObject
  /** The schema of an item without its id. */
  readonly newItemSchema: New
  readonly entries: Entries<Item, Static<New>>
}

const EntryId = Type.Object({ id: Type.String() })
const Order = Type.Object({ ids: Type.Array(Type.String()) }, { examples: [{ ids: ['first', 'second'] }] })

/** Adds all routes of an ordered entity: list, read, add, replace, remove and reorder. */
export function addOrderedEntityRoutes<Item extends { id: string }, New extends TObject> (
  app: FastifyInstance, { tag, path, noun, nouns, itemSchema, newItemSchema, entries }: OrderedEntity<Item, New>
): void {
  const entity = {
    tag,
    path,
    params: EntryId,
    noun,
    listedItems: `${nouns}, in their order`,
    itemSchema,
    newItemSchema: ClosedObject(newItemSchema),
    changeSchema: ClosedObject({
      ...newItemSchema, properties: { ...newItemSchema.properties, id: Type.Optional(ReadOnlyMember) }
    }),
    key: 'id' as const,
    descriptions: { create: 'It comes after the others.', update: 'Replaces the whole entry, which keeps its place.' },
    items: toEntityOperations(entries)
  }
  createApiRouter(app, tag).put(`${path}/order`, {
    summary: `Change the order of the ${nouns}`,
    description: 'Contains every id exactly once.',
    body: Order,
    data: Type.Array(itemSchema)
  }, async ({ principal, body }) =>
    ({ data: await entries.reorder(principal, body.ids), message: `The order of the ${nouns} was changed` }))
  addReadRoutes(app, entity)
  addWriteRoutes(app, entity)
}

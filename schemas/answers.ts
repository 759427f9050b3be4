import { Type, type TSchema } from '@sinclair/typebox'

/** A member that the gateway sets. A change may contain it, with the value from a response. */
export const ReadOnlyMember = Type.String({ description: 'Read-only: a request may contain the value from a response' })

/** Creates the schema of a successful response of a management route. */
export const Success = <Data extends TSchema>(data: Data) =>
  Type.Object({ success: Type.Literal(true), data, message: Type.Optional(Type.String()) })
/**
 * Creates the schema of a successful response of a management route that stores something. The response may contain
 * warnings about stored members that do not have the expected effect.
 */
export const SuccessWithWarnings = <Data extends TSchema>(data: Data) => Type.Object({
  success: Type.Literal(true),
  data,
  message: Type.Optional(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String(), {
    description: 'One sentence for each stored member that has no effect, or not the one that it seems to have. ' +
      'Absent: there are none'
  }))
})
/** The successful response of a management route that returns no data. */
export const SuccessWithoutData = Type.Object(
  { success: Type.Literal(true), message: Type.Optional(Type.String()) },
  { examples: [{ success: true, message: 'It was removed' }] }
)

export const Failure = Type.Object({
  success: Type.Literal(false),
  message: Type.String({ description: 'The problem, and how to solve it' }),
  code: Type.Optional(Type.String()),
  errors: Type.Optional(
    Type.Array(Type.Union([Type.String(), Type.Object({ path: Type.String(), message: Type.String() })]))
  )
})

export const PageQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Max entries of the page' })),
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the previous page' })),
  fields: Type.Optional(Type.String({ description: 'The members to return, comma-separated. Default: all' }))
})

/** Creates the schema of a response with a list, or with one page of a list. */
export const PageOf = <Item extends TSchema>(item: Item) => Type.Object({
  success: Type.Literal(true),
  data: Type.Array(item),
  nextCursor: Type.Optional(Type.String({
    description: 'The `cursor` of the next page; absent on the last page'
  }))
})

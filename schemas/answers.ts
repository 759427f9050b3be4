import { Type, type TSchema } from '@sinclair/typebox'

/** A read-only member. A change may contain it with the value from a response. */
export const ReadOnlyMember = Type.String({ description: 'May be sent as it was answered; it cannot be changed' })

/** The response of a successful management route. */
export const Success = <Data extends TSchema>(data: Data) =>
  Type.Object({ success: Type.Literal(true), data, message: Type.Optional(Type.String()) })
/** The response of a successful write, with warnings about references to things that do not exist. */
export const SuccessWithWarnings = <Data extends TSchema>(data: Data) => Type.Object({
  success: Type.Literal(true),
  data,
  message: Type.Optional(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String(), {
    description: 'What was stored and has no effect, or another one than it seems to have: a sentence each. Absent: ' +
      'nothing'
  }))
})
/** The response of a successful write without data. */
export const SuccessWithoutData = Type.Object(
  { success: Type.Literal(true), message: Type.Optional(Type.String()) },
  { examples: [{ success: true, message: 'It was removed' }] }
)

export const Failure = Type.Object({
  success: Type.Literal(false),
  message: Type.String({ description: 'What is wrong, and what to change' }),
  code: Type.Optional(Type.String()),
  errors: Type.Optional(
    Type.Array(Type.Union([Type.String(), Type.Object({ path: Type.String(), message: Type.String() })]))
  )
})

export const PageQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Max entries of the page' })),
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before' })),
  fields: Type.Optional(Type.String({ description: 'Only these members, comma-separated' }))
})

/** A complete list, or one page of it. */
export const PageOf = <Item extends TSchema>(item: Item) => Type.Object({
  success: Type.Literal(true),
  data: Type.Array(item),
  nextCursor: Type.Optional(Type.String({
    description: 'Send it as `cursor` for the next page; absent on the last one'
  }))
})

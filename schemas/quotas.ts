import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Name = Type.Optional(Type.String({ minLength: 1 }))
const target = {
  user: Name,
  team: Name,
  key: Type.Optional(Type.String({ minLength: 1, description: 'The id of a key' })),
  server: Name,
  tool: Type.Optional(Type.String({ minLength: 1, description: 'The tool\'s own name; requires `server`' }))
}
const members = {
  name: Type.String({ minLength: 1, maxLength: 200 }),
  enabled: Type.Optional(Type.Boolean({ description: 'Default: true' })),
  per: StringEnum(['minute', 'day'], {
    description: 'The period that the limits apply to. It begins with the first call'
  }),
  calls: Type.Optional(Type.Integer({ minimum: 0 })),
  resultTokens: Type.Optional(Type.Integer({ minimum: 0, description: 'The limit of tokens of results' }))
}
const targetDescription =
  'The calls that are counted: all given members must match, and `*` counts each user, team, key, server or tool ' +
  'separately. With `user`, all callers without a user count as one; with `key` or `team`, callers without one are ' +
  'not counted. Empty: all calls together'

/** A quota, as it is stored. Unknown members are kept unchanged. */
export const Quota = Type.Object({ id: Type.String({ minLength: 1 }), target: Type.Object(target), ...members })
export type Quota = Static<typeof Quota>

const example = { name: 'Fair share', target: { user: '*' }, per: 'day', calls: 1_000 }

/** A quota as the API returns it. */
export const QuotaRecord = Type.Object(
  { id: Type.String(), target: Type.Object(target), ...members },
  { examples: [{ id: '0e1b62e4-3f5c-4ab5-8ff5-9d1b8a7b6c02', enabled: true, ...example }] }
)

/** A quota as the API accepts it. */
export const NewQuota = Type.Object(
  { target: Type.Object(target, { additionalProperties: false, description: targetDescription }), ...members },
  { examples: [example] }
)

import { Type, type Static } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { StringEnum } from './string-enum.ts'

const url = { description: 'An absolute http or https URL' }
const webhook = {
  url: Type.String({ pattern: '^https?://', ...url }),
  secret: Type.String({
    minLength: 1,
    description: 'The secret that signs the requests (Standard Webhooks): `whsec_` and base64, or any text'
  }),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000, description: 'Default: 2000' })),
  whenAway: StringEnum(['allow', 'deny'], {
    description: 'What happens to a call if the webhook does not answer in time'
  })
}
const members = {
  name: Type.String({ minLength: 1, maxLength: 200 }),
  enabled: Type.Optional(Type.Boolean({ description: 'Default: true' })),
  on: StringEnum(['arguments', 'results', 'both'], {
    description: 'What is checked. Results are those of tools, prompts and resources, including errors, progress and ' +
      'log messages'
  }),
  servers: Type.Optional(Type.Array(Type.String(), {
    description: 'The servers that the guard applies to. Default: all'
  })),
  tools: Type.Optional(Type.Array(Type.String(), {
    description: 'The own names of the tools that the guard applies to. Default: all tools, prompts and resources'
  })),
  detect: Type.Optional(Type.Array(StringEnum(['secrets', 'email', 'card', 'iban', 'phone']))),
  webhook: Type.Optional(Type.Object(webhook)),
  action: StringEnum(['flag', 'mask', 'refuse'], { description: 'What happens if `detect` finds something' })
}

const example = { name: 'No personal data', on: 'both', servers: ['crm'], detect: ['email', 'card'], action: 'mask' }

/** A guard, which checks the content of arguments and results, as it is stored. Unknown members are kept unchanged. */
export const Guard = Type.Object({ id: Type.String({ minLength: 1 }), ...members })
export type Guard = Static<typeof Guard>

/** A guard as the API returns it, with the secret of its webhook masked. */
export const GuardRecord = Type.Object({ id: Type.String(), ...members }, {
  examples: [{ id: '0e1b62e4-3f5c-4ab5-8ff5-9d1b8a7b6c01', enabled: true, ...example }]
})

// An empty list would be a guard that applies to nothing.
const nonEmptyLists = {
  servers: Type.Optional(Type.Array(Type.String(), { ...members.servers, minItems: 1 })),
  tools: Type.Optional(Type.Array(Type.String(), { ...members.tools, minItems: 1 }))
}

/** A guard as the API accepts it. The API itself checks the webhook's URL, and explains what is wrong with it. */
export const NewGuard = Type.Object(
  {
    ...members,
    ...nonEmptyLists,
    webhook: Type.Optional(ClosedObject(Type.Object({ ...webhook, url: Type.String(url) })))
  },
  { examples: [example] }
)

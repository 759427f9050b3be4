import { Type, type Static } from '@sinclair/typebox'

/**
 * JSON Pointers of the values in a config that a user without admin rights wrote (`/url`, `/headers/x-api-key`,
 * `/args/0`); true means all values. The gateway sets this member. Variables in these values are not expanded, and
 * addresses among these values must be public.
 */
export const ValuesStoredByUser = Type.Optional(
  Type.Union([Type.Boolean(), Type.Array(Type.String())], {
    description: 'Set by the gateway: JSON Pointers of the values that a user without admin rights wrote, which have ' +
      'fewer rights; true: all values'
  })
)
export type ValuesStoredByUser = Static<typeof ValuesStoredByUser> | undefined

/** Returns the JSON Pointer (RFC 6901) of the value at a path. */
export const jsonPointerOf = (...path: ReadonlyArray<string | number>): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Creates a function that tests whether a user without admin rights wrote the value at a path of a config. */
export function createUserAuthorshipCheck (
  storedByUser: ValuesStoredByUser
): (...path: ReadonlyArray<string | number>) => boolean {
  if (storedByUser === true) return () => true
  const pointers = new Set(storedByUser === undefined || storedByUser === false ? [] : storedByUser)
  return (...path) => pointers.size > 0 && pointers.has(jsonPointerOf(...path))
}

/**
 * The paths of addresses in a config. If a user without admin rights wrote one of the addresses, the server may reach
 * only public addresses.
 */
export const addressPlaces = [
  ['url'],
  ['proxy'],
  ['openapi', 'url'],
  ['openapi', 'schema'],
  ['openapi', 'security', 'tokenUrl'],
  ['openapi', 'security', 'url'],
  ['oauth', 'issuer'],
  ['oauth', 'authorizationEndpoint'],
  ['oauth', 'tokenEndpoint']
] as const

import { errors } from '../errors/index.ts'

/**
 * Checks that a change does not alter members that only the gateway may set. The change may repeat their values.
 * @param sent the change, as sent by the caller
 * @param stored the record in the form in which the API returns it
 * @param names the members that only the gateway may set; their values must be primitive
 * @throws InvalidInput for a member with another value
 */
export function checkReadOnlyMembers<Stored extends object> (
  sent: object, stored: Stored, names: ReadonlyArray<keyof Stored & string>
): void {
  const given = sent as Partial<Stored>
  const changed = names.find((name) => given[name] !== undefined && given[name] !== stored[name])
  if (changed !== undefined) throw new errors.InvalidInput(`"${changed}" is set by the gateway, and cannot be changed`)
}

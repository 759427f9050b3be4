import { errors } from '../errors/index.ts'

/**
 * Checks members that the gateway sets, and that a change may only repeat.
 * @param sent the change
 * @param record as it was answered before
 * @throws InvalidInput for one with another value
 */
export function checkUnchanged<Record extends object> (sent: object, record: Record, names: ReadonlyArray<keyof Record & string>): void {
  const given = sent as Partial<Record>
  const changed = names.find((name) => given[name] !== undefined && given[name] !== record[name])
  if (changed !== undefined) throw new errors.InvalidInput(`"${changed}" is set by the gateway, and cannot be changed`)
}

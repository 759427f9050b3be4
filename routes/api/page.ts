import type { Static, TObject } from '@sinclair/typebox'
import { errors } from '../../plugins/base/errors/index.ts'
import type { PageQuery } from '../../schemas/api.ts'

/**
 * One page of a list, with the members that `fields` asks for. The cursor is the base64url of the last key of the page before, so that
 * a page stays right when other items come and go.
 * @param record the schema of an item, which says what members it may have
 * @param keyOf the key of an item, unique in the list
 * @throws InvalidInput for a cursor whose item is not in the list, and for a field that items do not have
 */
export function page<Item extends object> (
  items: readonly Item[],
  { limit = items.length, cursor, fields }: Static<typeof PageQuery>,
  record: TObject,
  keyOf: (item: Item) => string
): { data: Array<Partial<Item>>, nextCursor?: string } {
  const pick = fields === undefined ? undefined : picker(fields, Object.keys(record.properties))
  const from = cursor === undefined ? 0 : positionAfter(items.map(keyOf), cursor)
  const data = items.slice(from, from + limit)
  const last = data.at(-1)
  const hasMore = last !== undefined && from + limit < items.length
  return {
    data: pick ? data.map(pick) : data,
    ...(hasMore ? { nextCursor: Buffer.from(keyOf(last)).toString('base64url') } : {})
  }
}

function positionAfter (names: readonly string[], cursor: string): number {
  const name = Buffer.from(cursor, 'base64url').toString()
  const at = names.indexOf(name)
  if (at < 0) throw new errors.InvalidInput('"cursor" is not (or no longer) one of this list: begin again without it')
  return at + 1
}

/** @param fields names of members, comma-separated; those that are empty do not count @throws InvalidInput for one that is not known */
function picker (fields: string, known: readonly string[]): (<Item extends object>(item: Item) => Partial<Item>) | undefined {
  const wanted = new Set(fields.split(',').map((field) => field.trim()).filter((field) => field !== ''))
  const unknown = [...wanted].find((field) => !known.includes(field))
  if (unknown !== undefined) {
    throw new errors.InvalidInput(`"fields": ${JSON.stringify(unknown.slice(0, 100))} is not known; there are ${known.join(', ')}`)
  }
  if (wanted.size === 0) return undefined
  return <Item extends object>(item: Item) =>
    Object.fromEntries(Object.entries(item).filter(([key]) => wanted.has(key))) as Partial<Item>
}

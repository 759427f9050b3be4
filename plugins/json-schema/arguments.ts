import { isDeeperThan, isObject } from '../../protocol/json.ts'
import { limits } from '../limits/index.ts'
import { resolveRef, shapeOf, accepts, typesOf, type SchemaType } from './input-shape.ts'
import { inexactNumber } from './numbers.ts'

/**
 * Arguments as a tool's input schema wants them, where a caller wrote them as text (DECISIONS §8): integers and finite numbers,
 * `true|false|1|0`, lists from repeats or commas, objects and lists from JSON. What fits no such rule stays as it is: whoever
 * checks it says what is wrong with it.
 * @param eager a text becomes something else where it can, even where the schema may take it as it is
 */
export function convertArguments (schema: unknown, args: Readonly<Record<string, unknown>>, eager = false): Record<string, unknown> {
  const { properties, additional: others } = shapeOf(schema)
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      convert(properties.has(name) ? properties.get(name) : others, value, { root: schema, eager, isElement: false })
    ])
  )
}

/** What a text is taken for, the first that fits: the most telling first. Numbers come before the `1` and `0` of booleans. */
const order: readonly SchemaType[] = ['null', 'integer', 'number', 'boolean', 'object', 'array']

/** How texts are read. `isElement`: it stood between commas, so that it is no list itself unless in JSON. */
interface Reading { readonly root: unknown, readonly eager: boolean, readonly isElement: boolean }

function convert (schema: unknown, value: unknown, reading: Reading): unknown {
  const { root, eager } = reading
  if (Array.isArray(value)) {
    const elements = elementsOf(schema, root)
    return value.map((each, at) => convert(elements(at), each, reading))
  }
  if (typeof value !== 'string') return value
  const isText = accepts(schema, value, root)
  if (isText && !eager) return value
  const types = typesOf(schema, root)
  const values = order.flatMap((type) => {
    const converted = types.includes(type) ? toType(type, value, schema, reading) : undefined
    return converted === undefined ? [] : [converted]
  })
  // Where none fits, whoever checks it says more of a value of the right type.
  return [...values.filter((each) => accepts(schema, each, root)), ...(isText ? [value] : []), ...values, value][0]
}

function toType (type: SchemaType, text: string, schema: unknown, reading: Reading): unknown {
  switch (type) {
    case 'integer': return /^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
    case 'number': return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && inexactNumber(text) === undefined ? Number(text) : undefined
    case 'boolean': return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : undefined
    case 'null': return text === 'null' ? null : undefined
    case 'object': { const value = parsed(text); return isObject(value) ? value : undefined }
    case 'array': {
      const value = parsed(text)
      if (Array.isArray(value)) return value
      if (reading.isElement) return undefined
      const elements = elementsOf(schema, reading.root)
      return text === '' ? [] : text.split(',').map((each, at) => convert(elements(at), each.trim(), { ...reading, isElement: true }))
    }
    default: return undefined
  }
}

/** What the elements of a list are read by. Where it may be one of several lists, an element is whatever it may be in one of them. */
function elementsOf (schema: unknown, root: unknown): (at: number) => unknown {
  const lists = listsIn(schema, root, new Set())
  const known = new Map<number, unknown>()
  const first = Math.max(0, ...lists.map(({ prefixItems }) => Array.isArray(prefixItems) ? prefixItems.length : 0))
  return (at) => {
    const place = Math.min(at, first)
    if (!known.has(place)) {
      const choices = lists.map(({ prefixItems, items }): unknown =>
        Array.isArray(prefixItems) && place < prefixItems.length ? prefixItems[place] : (items ?? {})
      )
      known.set(place, choices.length > 1 ? { anyOf: choices } : choices[0])
    }
    return known.get(place)
  }
}

/** What of a schema speaks of lists: itself, or what it refers to or is made of. */
function listsIn (schema: unknown, root: unknown, seen: Set<unknown>): Array<Record<string, unknown>> {
  if (!isObject(schema) || seen.has(schema)) return []
  seen.add(schema)
  if (schema.type === 'array' || schema.items !== undefined || schema.prefixItems !== undefined) return [schema]
  const parts = [
    typeof schema.$ref === 'string' ? resolveRef(schema.$ref, root) : undefined,
    schema.allOf,
    schema.anyOf,
    schema.oneOf
  ].flat()
  return parts.flatMap((part) => listsIn(part, root, seen))
}

function parsed (text: string): unknown {
  if (isDeeperThan(text, limits.requestDepth)) return undefined
  try {
    return inexactNumber(text) === undefined ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
